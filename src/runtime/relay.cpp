#include "adapters.hpp"
#include "event_loop.hpp"
#include "member.hpp"
#include "relay_driver.hpp"
#include "start_checks.hpp"
#include "static_lister.hpp"

#include <millrace/relay.hpp>
#include <millrace/url.hpp>

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

namespace millrace {

namespace {

constexpr nanoseconds outbox_look_every = std::chrono::seconds{1};
constexpr nanoseconds once_look_every = std::chrono::milliseconds{5};

/// What `status` shows to other threads.
class shared_status {
public:
    void set(const relay_status& now) {
        const std::lock_guard lock(mutex_);
        now_ = now;
    }
    [[nodiscard]] relay_status get() const {
        const std::lock_guard lock(mutex_);
        return now_;
    }

private:
    mutable std::mutex mutex_;
    relay_status now_;
};

struct relay_urls {
    url outbox;
    url sink;
};

result<relay_urls> check(const relay_settings& settings) {
    std::optional<error> faults;
    auto outbox = parse_url(settings.outbox, url_role::outbox);
    auto sink = parse_url(settings.sink, url_role::sink);
    const auto tuning = settings.tuning.validate();
    if (!outbox) add_fault(faults, outbox.error());
    if (!sink) add_fault(faults, sink.error());
    if (!tuning) add_fault(faults, tuning.error());
    if (faults) return tl::unexpected(std::move(*faults));
    return relay_urls{std::move(*outbox), std::move(*sink)};
}

/// One run: everything on one loop, gone when it ends.
class relay_run final : public group_listener {
public:
    relay_run(const relay_settings& settings, shared_status& status)
        : settings_(settings),
          status_(status),
          loop_(settings.log ? *settings.log : null_log()),
          lister_(loop_, {outbox_group}) {}

    result<void> open(const relay_urls& urls);
    result<relay_status> go(const std::stop_token& stop);

    void granted(const lease_grant& grant) override;
    void revoke(const shard_id& shard) override;
    void lost(const shard_id& shard, const error& why) override;
    void failed(const error& why) override { end(tl::unexpected(why)); }

private:
    void begin(const result<void>& checked);
    void end(const result<void>& outcome);
    void set_leading(bool leading);
    void look_for_the_end();
    void publish_status();
    void look_at_outbox();
    [[nodiscard]] bool may_act() const { return leading_ && member_->group().may_act(shard_, epoch_); }

    const relay_settings& settings_;
    shared_status& status_;
    event_loop loop_;
    static_lister lister_;
    start_checks checks_;
    std::unique_ptr<outbox_source> source_;
    std::function<void(completion<outbox_look>)> look_;
    std::unique_ptr<event_sink> sink_;
    std::unique_ptr<relay_driver> driver_;
    std::unique_ptr<member> member_;

    const shard_id shard_{outbox_group};
    bool leading_{false};
    epoch epoch_;
    std::optional<result<void>> outcome_;
    std::optional<outbox_look> seen_;
    mono_time look_due_{};
    bool looking_{false};
    lifetime alive_;
};

result<void> relay_run::open(const relay_urls& urls) {
    auto source = open_outbox(urls.outbox, loop_);
    if (!source) return tl::unexpected(std::move(source.error()));
    source_ = std::move(source->source);
    look_ = std::move(source->look);
    auto sink = open_sink(urls.sink, loop_);
    if (!sink) return tl::unexpected(std::move(sink.error()));
    sink_ = std::move(sink->sink);
    checks_.add([this](completion<void> done) { source_->start(outcome_only<outbox_start>(std::move(done))); }
    );
    checks_.add(std::move(sink->look));
    driver_ = std::make_unique<relay_driver>(loop_, *source_, *sink_, settings_.tuning, [this] {
        return may_act();
    });
    driver_->on_stopped([this](const error& why) { end(tl::unexpected(why)); });

    group_options sharing;
    sharing.drain_limit = settings_.tuning.drain_limit;
    auto made = member::make(
        loop_,
        {.worker = settings_.worker, .lease = settings_.lease, .sharing = sharing},
        [where = urls.outbox](host& home) {
            return open_lease_store(where, {"", outbox_group}, home);
        },
        lister_,
        *this
    );
    if (!made) return tl::unexpected(std::move(made.error()));
    member_ = std::move(*made);
    return {};
}

result<relay_status> relay_run::go(const std::stop_token& stop) {
    const std::stop_callback on_stop(stop, [this] { loop_.post([this] { end({}); }); });
    if (settings_.stop_on_signals) {
        ignore_broken_pipes();
        loop_.on_signals([this](int) { end({}); });
    }
    checks_.run(loop_, [this](const result<void>& checked) { begin(checked); });
    loop_.run();
    publish_status();
    if (!*outcome_) return tl::unexpected(outcome_->error());
    return status_.get();
}

void relay_run::begin(const result<void>& checked) {
    if (outcome_) return;  // stopped before it began
    auto started = checked;
    if (started) started = member_->start();
    if (!started) return end(started);
    member_->on_beat([this] {
        look_at_outbox();
        publish_status();
    });
    if (settings_.once) look_for_the_end();
}

void relay_run::granted(const lease_grant& grant) {
    epoch_ = grant.epoch;
    set_leading(true);
    driver_->start(grant.epoch);
}

void relay_run::revoke(const shard_id& shard) {
    driver_->drain([this, shard](const result<void>& drained) {
        if (!leading_) return;  // lost meanwhile
        if (!drained) loop_.log().write(log_level::warning, "relay.drain", {{"why", drained.error().detail}});
        member_->group().release(shard, epoch_, [this](const result<void>& released) {
            if (released) return;
            loop_.log().write(log_level::warning, "relay.release", {{"why", released.error().detail}});
        });
        set_leading(false);
    });
}

void relay_run::lost(const shard_id&, const error& why) {
    loop_.log().write(log_level::warning, "relay.lost", {{"why", why.detail}});
    driver_->halt();
    set_leading(false);
}

void relay_run::set_leading(bool leading) {
    if (leading_ == leading) return;
    leading_ = leading;
    publish_status();
    using kind = leadership_change::kind;
    if (settings_.on_leadership)
        settings_.on_leadership({settings_.outbox, leading ? kind::acquired : kind::given_back, epoch_, ""});
}

void relay_run::look_for_the_end() {
    if (leading_ && driver_->empty()) return end({});
    loop_.call_at(loop_.now() + once_look_every, [this] { look_for_the_end(); });
}

/// The first call decides the outcome; what holds the lease gives it back
/// first.
void relay_run::end(const result<void>& outcome) {
    if (outcome_) return;
    outcome_ = outcome;
    loop_.post([this] {
        member_->stop([this](const result<void>& left) {
            if (!left) loop_.log().write(log_level::warning, "relay.left", {{"why", left.error().detail}});
            loop_.stop();
        });
    });
}

void relay_run::look_at_outbox() {
    const auto now = loop_.now();
    if (!leading_ || looking_ || now < look_due_) return;
    looking_ = true;
    look_due_ = now + outbox_look_every;
    look_(alive_.guard([this](const result<outbox_look>& seen) {
        looking_ = false;
        if (seen) seen_ = *seen;  // the next look comes soon, and faults of the table show elsewhere
    }));
}

void relay_run::publish_status() {
    const auto counters = driver_->counters();
    relay_status now;
    now.leading = leading_;
    now.epoch = epoch_;
    now.published = counters.published;
    now.acknowledged = counters.acknowledged;
    now.deleted = counters.deleted;
    now.retried = counters.retried;
    now.buried = counters.buried;
    now.in_flight = counters.in_flight;
    now.gaps = counters.gaps;
    now.outbox = seen_;
    now.ready = true;
    now.duplicates_at_risk = counters.duplicates_at_risk;
    now.bytes_in_memory = counters.bytes_in_memory;
    now.last_error = driver_->last_error();
    status_.set(now);
    if (settings_.on_progress) settings_.on_progress(now);
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
    return impl_->status.get();
}

std::vector<relay_status> relay::outboxes() const {
    return {impl_->status.get()};
}

}  // namespace millrace
