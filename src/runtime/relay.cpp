#include "adapters.hpp"
#include "caught_callback.hpp"
#include "event_loop.hpp"
#include "group/give_way.hpp"
#include "group_leadership.hpp"
#include "lease_leadership.hpp"
#include "outbox_relay.hpp"
#include "relay_sum.hpp"
#include "start_checks.hpp"
#include "text/span_limit.hpp"

#include <millrace/relay.hpp>
#include <millrace/url.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace millrace {

namespace {

constexpr nanoseconds beat_max = std::chrono::milliseconds{250};
constexpr nanoseconds drain_slack = std::chrono::milliseconds{500};
constexpr nanoseconds once_look_every = std::chrono::milliseconds{5};
constexpr nanoseconds count_limit = std::chrono::seconds{2};

// Damage does not mend, but what was read before it still goes out.
constexpr nanoseconds damaged_after = std::chrono::milliseconds{500};

/// What `status` shows to other threads.
class shared_status {
public:
    void set(std::vector<relay_status> now) {
        const std::lock_guard lock(mutex_);
        now_ = std::move(now);
    }
    [[nodiscard]] std::vector<relay_status> get() const {
        const std::lock_guard lock(mutex_);
        return now_;
    }

private:
    mutable std::mutex mutex_;
    std::vector<relay_status> now_;
};

struct relay_urls {
    std::vector<url> outboxes;
    url sink;
    std::optional<url> fleet;
};

result<relay_urls> check(const relay_settings& settings) {
    std::optional<error> faults;
    relay_urls urls;
    const auto wrong = [&](std::string detail) {
        add_fault(faults, error{errc::invalid_config, retry_advice::never, false, std::move(detail)});
    };
    const auto read = [&](const std::string& given, url_role role) {
        auto parsed = parse_url(given, role);
        if (!parsed) add_fault(faults, parsed.error());
        return parsed;
    };
    auto given = settings.outboxes;
    if (!settings.outbox.empty() || given.empty()) given.insert(given.begin(), settings.outbox);
    for (const auto& one : given) {
        if (auto parsed = read(one, url_role::outbox)) urls.outboxes.push_back(std::move(*parsed));
    }
    for (std::size_t i = 1; i < urls.outboxes.size(); ++i) {
        const auto end = urls.outboxes.begin() + static_cast<std::ptrdiff_t>(i);
        if (std::find(urls.outboxes.begin(), end, *end) == end) continue;
        wrong(fmt::format("outbox {} is named twice; name it once", end->given));
    }
    if (auto sink = read(settings.sink, url_role::sink)) urls.sink = std::move(*sink);
    if (!settings.outbox_id.empty() && urls.outboxes.size() > 1)
        wrong("outbox_id names one outbox, and there are several; leave it out, or run a relay for each");
    for (const auto& [name, span] :
         {std::pair{"lease", settings.lease},
          std::pair{"idle_partition", settings.idle_partition},
          std::pair{"throughput_every", settings.throughput_every}}) {
        if (const auto valid = check_span(name, span); !valid) add_fault(faults, valid.error());
    }
    if (const auto valid = settings.tuning.validate(); !valid) add_fault(faults, valid.error());
    if (const auto valid = settings.leadership.validate(); !valid) add_fault(faults, valid.error());
    if (!settings.schemas.empty()) {
        if (const auto valid = settings.schemas.validate(); !valid) add_fault(faults, valid.error());
        if (urls.sink.scheme == "kinesis")
            wrong("schemas are for topics of Kafka; leave their rules out, or choose another sink");
    }
    if (!settings.fleet_state.empty()) {
        if (settings.leadership.by != leadership_way::lease)
            wrong("a fleet's state and the Kafka group protocol exclude each other; choose one");
        if (auto state = read(settings.fleet_state, url_role::state)) urls.fleet = std::move(*state);
    }
    if (faults) return tl::unexpected(std::move(*faults));
    return urls;
}

/// A missing file is a mistake at the start; a server may come back, and a right be granted, but who runs
/// with `once` wants to know.
bool ends_the_start(const error& why, bool is_a_file, bool once) {
    if (is_a_file) return keeps_from_starting(why);
    return why.code == errc::invalid_config || why.code == errc::invalid_argument ||
           (once && why.code == errc::permission_denied);
}

/// One run: everything on one loop, gone when it ends.
class relay_run final {
public:
    relay_run(const relay_settings& settings, shared_status& status)
        : settings_(settings), status_(status), loop_(settings.log ? *settings.log : null_log()) {
        const auto failed = [this](const error& why) { end(tl::unexpected(why)); };
        const auto cover = [&](const char* name, auto& what) {
            what = caught(name, std::move(what), loop_.log(), failed);
        };
        cover("on_progress", settings_.on_progress);
        cover("on_leadership", settings_.on_leadership);
        cover("on_throughput", settings_.on_throughput);
    }

    result<void> open(const relay_urls& urls);
    result<relay_status> go(const std::stop_token& stop);

private:
    struct rows_left {
        std::uint64_t about{0};
        std::optional<error> why;
        std::vector<row_id> first;
        std::uint64_t settled{0};  ///< Rows that had been deleted or buried by then.
    };

    /// Outboxes that are led, given back and given way with together.
    struct shared_lead {
        std::unique_ptr<leadership> by;
        std::vector<outbox_relay*> outboxes;
        bool stopping{false};
    };

    result<void> open_leaderships(const relay_urls& urls);
    void add_lead(std::unique_ptr<leadership> by, std::vector<outbox_relay*> outboxes);
    [[nodiscard]] seat_setup seat_of(outbox_relay& one, const url& outbox, bool raises);
    [[nodiscard]] member_settings as_member() const;
    void look_first(std::size_t index);
    void begin();
    void tell_while_waiting();
    void beat();
    void give_way_where_due();
    void changed();
    void lead_failed(std::size_t index, const error& why);
    void stop_lead(shared_lead& lead);
    void end(const result<void>& outcome);
    void look_for_the_end();
    void stopped();
    void publish_status();

    relay_settings settings_;
    shared_status& status_;
    event_loop loop_;
    std::vector<url> urls_;
    bool sink_is_a_file_{false};
    std::shared_ptr<schemas> coding_;
    std::vector<std::unique_ptr<outbox_relay>> outboxes_;
    std::vector<shared_lead> leads_;
    std::size_t looks_awaited_{0};
    std::optional<error> faults_;
    std::optional<result<void>> outcome_;
    bool begun_{false};
    std::map<const outbox_relay*, rows_left> left_;  ///< Of those that were given up.
    bool by_itself_{false};                          ///< It ended because nothing was left to do.
    std::size_t stopping_{0};
    std::size_t counts_awaited_{0};
    lifetime alive_;
};

bool is_a_file(const url& where) {
    return where.scheme == "sqlite" || where.scheme == "local";
}

result<void> relay_run::open(const relay_urls& urls) {
    if (settings_.stop_on_signals) {  // first, so that what is opened is given back, too
        ignore_broken_pipes();
        loop_.on_signals([this](int) { end({}); });
    }
    urls_ = urls.outboxes;
    sink_is_a_file_ = is_a_file(urls.sink);
    if (!settings_.schemas.empty()) {
        auto opened = open_schemas(settings_.schemas, loop_);
        if (!opened) return tl::unexpected(std::move(opened.error()));
        coding_ = std::move(*opened);
    }
    for (const auto& outbox : urls_) {
        auto made = outbox_relay::open(loop_, settings_, outbox, urls.sink, coding_, [this] { changed(); });
        if (!made) return tl::unexpected(std::move(made.error()));
        outboxes_.push_back(std::move(*made));
    }
    return open_leaderships(urls);
}

member_settings relay_run::as_member() const {
    group_options sharing;
    // The relay's own limit comes first: it says what was not settled, and the lease is given back in order.
    sharing.drain_limit = settings_.tuning.drain_limit + drain_slack;
    return {.worker = settings_.worker, .lease = settings_.lease, .sharing = sharing};
}

seat_setup relay_run::seat_of(outbox_relay& one, const url& outbox, bool raises) {
    seat_setup made{.name = raises ? one.address() : outbox_group, .holder = &one, .raise_in = nullptr};
    if (raises) {
        made.raise_in = [outbox, lease = settings_.lease](host& home) {
            return open_lease_store(outbox, {"", outbox_group}, home, used_under(lease));
        };
    }
    return made;
}

result<void> relay_run::open_leaderships(const relay_urls& urls) {
    const bool by_group = settings_.leadership.by == leadership_way::kafka_group;
    const auto failed = [this](std::size_t lead) {
        return [this, lead](const error& why) { lead_failed(lead, why); };
    };
    if (!by_group && !urls.fleet) {
        for (std::size_t i = 0; i < urls_.size(); ++i) {
            auto made = lease_leadership::make(
                loop_,
                as_member(),
                {seat_of(*outboxes_[i], urls_[i], false)},
                [where = urls_[i], lease = settings_.lease](host& home) {
                    return open_lease_store(where, {"", outbox_group}, home, used_under(lease));
                },
                failed(i)
            );
            if (!made) return tl::unexpected(std::move(made.error()));
            add_lead(std::move(*made), {outboxes_[i].get()});
        }
        return {};
    }
    std::vector<seat_setup> seats;
    std::vector<outbox_relay*> all;
    for (std::size_t i = 0; i < urls_.size(); ++i) {
        seats.push_back(seat_of(*outboxes_[i], urls_[i], true));
        all.push_back(outboxes_[i].get());
    }
    if (urls.fleet) {
        auto made = lease_leadership::make(
            loop_,
            as_member(),
            std::move(seats),
            [where = *urls.fleet, fleet = settings_.fleet, lease = settings_.lease](host& home) {
                return open_lease_store(where, {"", fleet}, home, used_under(lease));
            },
            failed(0)
        );
        if (!made) return tl::unexpected(std::move(made.error()));
        add_lead(std::move(*made), std::move(all));
        return {};
    }
    auto leader = open_group_leader(settings_.leadership, settings_.worker, urls.sink, loop_);
    if (!leader) return tl::unexpected(std::move(leader.error()));
    auto made = group_leadership::make(loop_, std::move(*leader), std::move(seats));
    if (!made) return tl::unexpected(std::move(made.error()));
    add_lead(std::move(*made), std::move(all));
    return {};
}

void relay_run::add_lead(std::unique_ptr<leadership> by, std::vector<outbox_relay*> outboxes) {
    for (std::size_t i = 0; i < outboxes.size(); ++i)
        outboxes[i]->attach(*by, i);
    leads_.push_back({std::move(by), std::move(outboxes)});
}

result<relay_status> relay_run::go(const std::stop_token& stop) {
    const std::stop_callback on_stop(stop, [this] { loop_.post([this] { end({}); }); });
    tell_while_waiting();
    for (std::size_t i = 0; i < outboxes_.size(); ++i)
        look_first(i);
    if (coding_) coding_->look(alive_.guard([this](const error& why) { end(tl::unexpected(why)); }));
    if (looks_awaited_ == 0) loop_.post(alive_.guard([this] { begin(); }));
    loop_.run();
    publish_status();
    if (!*outcome_) return tl::unexpected(outcome_->error());
    return sum_of(status_.get());
}

/// Files must be there before anything begins; servers are looked at beside it.
void relay_run::look_first(std::size_t index) {
    const bool outbox_is_a_file = is_a_file(urls_[index]);
    const bool awaited = outbox_is_a_file || sink_is_a_file_;
    if (awaited) ++looks_awaited_;
    outboxes_[index]->look(
        [this, index, outbox_is_a_file, awaited](const result<void>& outbox, const result<void>& sink) {
            std::optional<error> fault;
            const bool once = settings_.once;
            if (!outbox && ends_the_start(outbox.error(), outbox_is_a_file, once))
                add_fault(fault, outbox.error());
            if (!sink && ends_the_start(sink.error(), sink_is_a_file_, once)) add_fault(fault, sink.error());
            if (!fault) outboxes_[index]->note(outbox ? sink : outbox);
            if (fault) add_fault(faults_, *fault);
            if (fault && !awaited) return end(tl::unexpected(*faults_));
            if (!awaited || --looks_awaited_ > 0) return;
            faults_ ? end(tl::unexpected(*faults_)) : begin();
        }
    );
}

void relay_run::begin() {
    if (outcome_ || std::exchange(begun_, true)) return;
    for (const auto& one : outboxes_)
        one->begin();
    for (auto& lead : leads_) {
        if (const auto started = lead.by->start(); !started) return end(started);
    }
    beat();
    if (settings_.once) look_for_the_end();
}

/// Until it begins; then the beat does.
void relay_run::tell_while_waiting() {
    if (begun_) return;
    publish_status();
    loop_.call_at(loop_.now() + beat_max, alive_.guard([this] { tell_while_waiting(); }));
}

void relay_run::beat() {
    for (const auto& one : outboxes_)
        one->beat();
    if (!outcome_) give_way_where_due();
    publish_status();
    const auto every = std::min(beat_max, settings_.lease / 10);
    loop_.call_at(loop_.now() + every, alive_.guard([this] { beat(); }));
}

void relay_run::give_way_where_due() {
    for (const auto& lead : leads_) {
        std::vector<seat_reach> led;
        for (const auto* one : lead.outboxes) {
            if (one->leading() || lead.by->raising_since(one->seat())) led.push_back(one->reach());
        }
        if (!gives_way(loop_.now(), led, lead.by->others_wait(), settings_.leadership.yield_after)) continue;
        loop_.log().write(
            log_level::warning,
            "relay.gives_way",
            {{"outbox", lead.outboxes.front()->address()},
             {"outboxes", std::to_string(lead.outboxes.size())},
             {"detail", "the sink or the outbox has not answered this relay for yield_after; another waits"}}
        );
        lead.by->give_way();
    }
}

void relay_run::changed() {
    publish_status();
    std::optional<error> why;
    for (const auto& one : outboxes_) {
        if (!one->ended()) return;
        add_fault(why, *one->ended());
    }
    if (why) end(tl::unexpected(*why));
}

/// Rows that nothing comes of are left where they are.
void relay_run::look_for_the_end() {
    if (outcome_) return;
    left_.clear();
    std::optional<error> blocked;
    bool all_ended = true;
    for (const auto& one : outboxes_) {
        if (one->ended()) add_fault(blocked, *one->ended());
        if (one->done() || one->done_by_another() || one->ended()) continue;
        const auto yield_after = settings_.leadership.yield_after;
        const auto limit = one->damaged() ? std::min(damaged_after, yield_after) : yield_after;
        const auto now = one->status();
        if (!one->stuck_for(limit) || (!one->leading() && !now.last_error)) {
            all_ended = false;
        } else if (!one->leading()) {
            add_fault(blocked, *now.last_error);
        } else if (now.last_error || !now.outbox || now.outbox->backlog > 0) {
            left_[one.get()] = {
                now.outbox ? now.outbox->backlog : 0,
                now.last_error,
                one->unsettled(),
                now.deleted + now.buried};
        }
    }
    by_itself_ = all_ended && !blocked;
    if (all_ended) return end(blocked ? tl::unexpected(*blocked) : result<void>{});
    loop_.call_at(loop_.now() + once_look_every, alive_.guard([this] { look_for_the_end(); }));
}

/// The first call decides the outcome; what holds the lease gives it back first.
void relay_run::end(const result<void>& outcome) {
    if (outcome_) return;
    outcome_ = outcome;
    for (const auto& one : outboxes_)
        one->retire();
    for (auto& lead : leads_)
        stop_lead(lead);
    if (stopping_ == 0) loop_.post([this] { loop_.stop(); });
}

/// The outboxes of other leaderships go on.
void relay_run::lead_failed(std::size_t index, const error& why) {
    if (outcome_) return;
    for (auto* one : leads_[index].outboxes)
        one->give_up(why);
    stop_lead(leads_[index]);
}

void relay_run::stop_lead(shared_lead& lead) {
    if (std::exchange(lead.stopping, true)) return;
    ++stopping_;
    loop_.post(alive_.guard([this, by = lead.by.get()] {
        by->stop([this](const result<void>& left) {
            if (!left) {
                loop_.log().write(log_level::warning, "relay.left", {{"why", left.error().detail}});
            }
            if (--stopping_ == 0 && outcome_) stopped();
        });
    }));
}

/// What had been given up may have come through in the drain: then it is counted again.
void relay_run::stopped() {
    for (const auto& one : outboxes_) {
        const auto given_up = left_.find(one.get());
        const auto now = one->status();
        if (given_up == left_.end() || given_up->second.settled == now.deleted + now.buried) continue;
        ++counts_awaited_;
        one->see_rows(alive_.guard([this, one = one.get()](const result<void>& seen) {
            if (const auto rows = one->status().outbox; seen && rows) {
                auto& left = left_[one];
                std::tie(left.about, left.first) = std::pair(rows->backlog, one->unsettled());
                if (left.about == 0) left_.erase(one);
            }
            if (--counts_awaited_ == 0) loop_.stop();
        }));
    }
    if (counts_awaited_ == 0) return loop_.stop();
    loop_.call_at(loop_.now() + count_limit, alive_.guard([this] { loop_.stop(); }));
}

void relay_run::publish_status() {
    std::vector<relay_status> all;
    for (const auto& one : outboxes_) {
        all.push_back(one->status());
        if (!by_itself_) continue;
        all.back().ended = once_end::nothing_left;
        const auto left = left_.find(one.get());
        if (left == left_.end()) continue;
        all.back().ended = once_end::gave_up;
        all.back().left = left->second.about;
        all.back().first_left = left->second.first;
        all.back().last_error = left->second.why;
    }
    const auto sum = sum_of(all);
    status_.set(std::move(all));
    if (settings_.on_progress) settings_.on_progress(sum);
}

}  // namespace

struct relay::impl {
    relay_settings settings;
    shared_status status;
    std::atomic<bool> ran{false};
};

relay::relay(relay_settings settings) : impl_(std::make_unique<impl>()) {
    impl_->settings = std::move(settings);
}

relay::~relay() = default;

result<relay_status> relay::run(const std::stop_token& stop) {
    if (impl_->ran.exchange(true)) {
        return fail(errc::invalid_argument, "this relay has run already; make a new one");
    }
    const auto urls = check(impl_->settings);
    if (!urls) return tl::unexpected(urls.error());
    relay_run run(impl_->settings, impl_->status);
    if (auto opened = run.open(*urls); !opened) return tl::unexpected(std::move(opened.error()));
    return run.go(stop);
}

relay_status relay::status() const {
    return sum_of(impl_->status.get());
}

std::vector<relay_status> relay::outboxes() const {
    return impl_->status.get();
}

}  // namespace millrace
