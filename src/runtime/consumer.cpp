#include "adapters.hpp"
#include "caught_callback.hpp"
#include "consumer_driver.hpp"
#include "event_loop.hpp"
#include "idle_watch.hpp"
#include "member.hpp"
#include "start_checks.hpp"
#include "worker_pool.hpp"

#include <millrace/consumer.hpp>
#include <millrace/url.hpp>

#include <algorithm>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace millrace {

namespace {

constexpr nanoseconds idle_look_max = std::chrono::milliseconds{100};
constexpr nanoseconds idle_look_min = std::chrono::milliseconds{10};
constexpr nanoseconds tell_every = std::chrono::milliseconds{250};
constexpr std::size_t threads_max = 256;

// What is away for less is waited for with `idle_exit`, too.
constexpr nanoseconds stuck_for = std::chrono::seconds{30};

struct consumer_urls {
    url stream;
    url state;
    std::optional<url> dead_letters;
    std::optional<checkpoint_place> place;  // for handlers that write the checkpoints
};

/// Under which names the group's rows are stored.
group_key group_of(const consumer_settings& settings, const consumer_urls& urls) {
    return {urls.stream.stream, settings.group};
}

result<checkpoint_place> place_of(const consumer_settings& settings, const consumer_urls& urls) {
    if (settings.sharing.all_shards) {
        return fail(
            errc::invalid_config,
            "handlers cannot write the checkpoints when one process takes all shards: it has no session that "
            "could fence them; leave out all_shards"
        );
    }
    return checkpoint_schema(urls.state).map([&](std::string schema) {
        auto group = group_of(settings, urls);
        return checkpoint_place{
            std::move(schema), std::move(group.stream), std::move(group.name), settings.lease};
    });
}

result<consumer_urls> check(const consumer_settings& settings) {
    std::optional<error> faults;
    consumer_urls urls;
    const auto take = [&](const std::string& given, url_role role) {
        auto parsed = parse_url(given, role);
        if (parsed) return std::move(*parsed);
        add_fault(faults, parsed.error());
        return url{};
    };
    urls.stream = take(settings.stream, url_role::stream);
    urls.state = take(settings.state, url_role::state);
    if (settings.reading.on_failure == failure_policy::dead_letter) {
        urls.dead_letters = take(settings.dead_letters, url_role::dead_letters);
    }
    if (settings.group.empty()) {
        add_fault(faults, {errc::invalid_argument, {}, false, "the group's name is empty; give it one"});
    }
    if (settings.threads > threads_max) {
        add_fault(faults, {errc::invalid_argument, {}, false, "threads is above its limit of 256"});
    }
    if (const auto reading = settings.reading.validate(); !reading) add_fault(faults, reading.error());
    if (const auto sharing = settings.sharing.validate(); !sharing) add_fault(faults, sharing.error());
    if (!faults && settings.reading.checkpoints == checkpoint_writer::handler) {
        auto place = place_of(settings, urls);
        if (!place) return tl::unexpected(std::move(place.error()));
        urls.place = std::move(*place);
    }
    if (faults) return tl::unexpected(std::move(*faults));
    return urls;
}

/// A state makes what it needs: what it does not find at the start, such as its database, nobody makes.
template <class T>
[[nodiscard]] auto of_state(completion<void> done) {
    return outcome_only<T>([done = std::move(done)](result<void> outcome) {
        if (!outcome && outcome.error().code == errc::not_found) outcome.error().retry = retry_advice::never;
        done(std::move(outcome));
    });
}

std::optional<error> not_listed_yet(const group_driver& group, const std::optional<error>& first_look) {
    if (group.stream()) return std::nullopt;
    if (first_look) return first_look;
    return error{
        errc::unavailable,
        retry_advice::after_delay,
        false,
        "the shards of the stream have not been listed yet; their listing is under way"};
}

error not_a_member_yet() {
    return {
        errc::unavailable,
        retry_advice::after_delay,
        false,
        "this worker is not among those of its group yet: the state has not shown it, or another session has "
        "its worker id"};
}

error given_up(error why, const idle_watch& after) {
    why.detail = fmt::format(
        "nothing could be done for {} s: {}",
        std::chrono::floor<std::chrono::seconds>(after.limit()).count(),
        why.detail
    );
    return why;
}

/// Of all shards, and of those that want a look.
void sum_up(std::vector<shard_progress> shards, consumer_status& into) {
    for (const auto& shard : shards) {
        into.behind = std::max(into.behind, shard.behind);
        into.blocked = std::max(into.blocked, shard.blocked);
        into.failing = std::max(into.failing, shard.failing);
        if (shard.retention_left)
            into.retention_left =
                std::min(into.retention_left.value_or(nanoseconds::max()), *shard.retention_left);
    }
    if (shards.size() > consumer_status::shards_told) {
        std::partial_sort(
            shards.begin(),
            shards.begin() + consumer_status::shards_told,
            shards.end(),
            [](const auto& a, const auto& b) {
                return std::tie(b.failing, b.blocked, b.behind, a.shard) <
                       std::tie(a.failing, a.blocked, a.behind, b.shard);
            }
        );
        shards.resize(consumer_status::shards_told);
    }
    into.progress = std::move(shards);
}

}  // namespace

/// What lives as long as the consumer and is seen by other threads.
struct consumer::impl {
    consumer_settings settings;
    record_handler& handler;

    mutable std::mutex mutex;
    consumer_status status;
    bool ran{false};
    std::function<void(error)> abort;  // set while it runs

    class can_abort {
    public:
        can_abort(impl& of, std::function<void(error)> how) : of_(of) { set(std::move(how)); }
        ~can_abort() { set(nullptr); }
        can_abort(const can_abort&) = delete;
        can_abort& operator=(const can_abort&) = delete;

    private:
        void set(std::function<void(error)> how) {
            const std::lock_guard lock(of_.mutex);
            of_.abort = std::move(how);
        }
        impl& of_;
    };
};

namespace {

/// One run: everything on one loop, gone when it ends.
class consumer_run final : public group_listener {
public:
    consumer_run(const consumer_settings& settings, std::function<void(const consumer_status&)> publish)
        : settings_(settings),
          loop_(settings.log ? *settings.log : null_log()),
          publish_(caught(
              "on_progress",
              std::move(publish),
              loop_.log(),
              [this](const error& why) { end(tl::unexpected(why)); }
          )),
          idle_(settings.idle_exit.value_or(nanoseconds::max())),
          stuck_(std::max<nanoseconds>(settings.idle_exit.value_or(nanoseconds{0}), stuck_for)),
          pool_(settings.threads > 0 ? settings.threads : worker_pool::default_threads()) {}

    result<void> open(const consumer_urls& urls, record_handler& handler);
    result<consumer_status> go(const std::stop_token& stop);
    void abort(error why);

    void granted(const lease_grant& grant) override;
    void revoke(const shard_id& shard) override { driver_->revoke(shard); }
    void lost(const shard_id& shard, const error& why) override { driver_->lost(shard, why); }
    void membership(std::size_t index, std::size_t total) override;
    void failed(const error& why) override { driver_->failed(why); }

private:
    void note_first_look(const error& why);
    void begin(const result<void>& checked);
    void tell_while_waiting();
    void end(const result<void>& outcome);
    void look_whether_idle();
    [[nodiscard]] std::optional<error> trouble() const;
    [[nodiscard]] consumer_status look() const;

    const consumer_settings& settings_;
    event_loop loop_;
    std::function<void(const consumer_status&)> publish_;
    start_checks checks_;
    start_checks checks_of_state_;
    idle_watch idle_;
    idle_watch stuck_;
    std::unique_ptr<record_source> source_;
    std::unique_ptr<dead_letter_sink> dead_letters_;
    worker_pool pool_;
    std::unique_ptr<consumer_driver> driver_;
    std::unique_ptr<member> member_;

    std::size_t index_{0};
    std::size_t total_{0};
    bool begun_{false};
    std::optional<error> first_look_;  // what it met at the stream and is waited for
    std::optional<result<void>> outcome_;
};

result<void> consumer_run::open(const consumer_urls& urls, record_handler& handler) {
    if (settings_.stop_on_signals) {  // first, so that what is opened is given back, too
        ignore_broken_pipes();
        loop_.on_signals([this](int) { end({}); });
    }
    auto source = open_source(urls.stream, loop_);
    if (!source) return tl::unexpected(std::move(source.error()));
    source_ = std::move(*source);
    if (urls.dead_letters) {
        auto sink = open_dead_letters(*urls.dead_letters, urls.stream.stream, loop_);
        if (!sink) return tl::unexpected(std::move(sink.error()));
        dead_letters_ = std::move(sink->sink);
        checks_.add(std::move(sink->look));
    }
    driver_ = std::make_unique<consumer_driver>(
        loop_, *source_, handler, pool_, dead_letters_.get(), settings_.reading, urls.place
    );
    driver_->on_failed([this](const error& why) { end(tl::unexpected(why)); });
    auto made = member::make(
        loop_,
        {.worker = settings_.worker, .lease = settings_.lease, .sharing = settings_.sharing},
        [where = urls.state, group = group_of(settings_, urls), lease = settings_.lease](host& home) {
            return open_lease_store(where, group, home, used_under(lease));
        },
        *source_,
        *this
    );
    if (!made) return tl::unexpected(std::move(made.error()));
    member_ = std::move(*made);
    driver_->attach(member_->group());
    return {};
}

result<consumer_status> consumer_run::go(const std::stop_token& stop) {
    const std::stop_callback on_stop(stop, [this] { loop_.post([this] { end({}); }); });
    checks_.add([this](completion<void> done) {
        const bool waits = !settings_.idle_exit;
        source_->list_shards([this, waits, done = std::move(done)](result<stream_listing> listed) {
            if (listed) return done({});
            auto why = std::move(listed.error());
            if (why.code == errc::not_found && !waits) why.retry = retry_advice::never;
            note_first_look(why);
            done(tl::unexpected(std::move(why)));
        });
    });
    checks_of_state_.add([this](completion<void> done) {
        member_->store().list_workers(of_state<std::vector<worker_row>>(std::move(done)));
    });
    checks_of_state_.add([this](completion<void> done) {
        member_->store().list_shards(of_state<std::vector<shard_row>>(std::move(done)));
    });
    // By its whole key: a table whose key is of other types can be listed all the same.
    checks_of_state_.add([this](completion<void> done) {
        member_->store().read(std::monostate{}, of_state<std::optional<lease_row>>(std::move(done)));
    });
    tell_while_waiting();
    (void)stuck_.over(loop_.now(), true, 0);  // its time counts from here
    // A state is made where it is missing, but not for a stream that is not there.
    checks_.run(loop_, [this](const result<void>& checked) {
        if (!checked || outcome_) return begin(checked);
        checks_of_state_.run(loop_, [this](const result<void>& of_state) { begin(of_state); });
    });
    loop_.run();
    pool_.shut_down();  // waits for the handlers that still run
    const auto last = look();
    publish_(last);
    if (!*outcome_) return tl::unexpected(outcome_->error());
    return last;
}

/// What is missing, and not only away, the group finds and says at once.
void consumer_run::note_first_look(const error& why) {
    if (keeps_from_starting(why)) return;
    first_look_ = why;
    if (why.code == errc::unavailable)
        loop_.log().write(log_level::warning, "stream.list_failed", {{"detail", why.detail}});
    publish_(look());
}

void consumer_run::begin(const result<void>& checked) {
    if (outcome_) return;  // stopped before it began
    auto started = checked;
    if (started) started = member_->start();
    if (!started) return end(started);
    begun_ = true;
    member_->on_beat([this] { publish_(look()); });
    if (settings_.idle_exit) look_whether_idle();
}

/// Until it begins; then the member's beat does.
void consumer_run::tell_while_waiting() {
    if (begun_) return;
    publish_(look());
    loop_.call_at(loop_.now() + tell_every, [this] { tell_while_waiting(); });
}

void consumer_run::granted(const lease_grant& grant) {
    driver_->granted(grant);
}

void consumer_run::membership(std::size_t index, std::size_t total) {
    index_ = index;
    total_ = total;
    driver_->membership(index, total);
}

void consumer_run::look_whether_idle() {
    if (outcome_) return;
    const auto& group = member_->group();
    auto damage = driver_->idle_but_damaged();
    if (!damage && driver_->idle()) damage = group.contradiction();
    if (!damage && driver_->idle()) damage = group.unreadable();
    const auto unlisted = group.stream_trouble();
    const bool for_good = unlisted && (unlisted->code == errc::not_found || keeps_from_starting(*unlisted));
    if (!damage && for_good) damage = unlisted;
    // Rows alone tell of an earlier run: the stream may hold more by now.
    const bool at_end = group.stream_is_known() && (damage || driver_->idle()) &&
                        !work_is_open(group.shards(), damage.has_value());
    const bool quiet = group.settled() && (for_good || at_end);
    if (idle_.over(loop_.now(), quiet, driver_->counters().records_read)) {
        return end(damage ? tl::unexpected(*damage) : result<void>{});
    }
    // A job that is to end by itself waits for no outage that lasts.
    const auto why = trouble();
    const auto done = driver_->counters().records_read + driver_->counters().records_acknowledged;
    if (stuck_.over(loop_.now(), why.has_value(), done)) return end(tl::unexpected(given_up(*why, stuck_)));
    const auto pause = std::clamp(*settings_.idle_exit / 10, idle_look_min, idle_look_max);
    loop_.call_at(loop_.now() + pause, [this] { look_whether_idle(); });
}

void consumer_run::abort(error why) {
    loop_.post([this, why = std::move(why)] { end(tl::unexpected(why)); });
}

/// The first call decides the outcome; the shards are given back before the
/// loop ends.
void consumer_run::end(const result<void>& outcome) {
    if (outcome_) return;
    outcome_ = outcome;
    loop_.post([this] {
        member_->stop([this](const result<void>& left) {
            if (!left) loop_.log().write(log_level::warning, "group.left", {{"why", left.error().detail}});
            loop_.stop();
        });
    });
}

consumer_status consumer_run::look() const {
    const auto counters = driver_->counters();
    consumer_status now;
    now.shards = member_->group().shards_held();
    now.index = index_;
    now.total = total_;
    now.reads = counters.reads;
    now.reads_throttled = counters.reads_throttled;
    now.reads_failed = counters.reads_failed;
    now.records_read = counters.records_read;
    now.bytes_read = counters.bytes_read;
    const auto unpacked = source_->unpacked();
    now.aggregates = unpacked.aggregates;
    now.sub_records = unpacked.sub_records;
    now.sub_records_foreign = unpacked.sub_records_foreign;
    now.records_acknowledged = counters.records_acknowledged;
    now.records_dead_lettered = counters.records_dead_lettered;
    now.handler_failures = counters.handler_failures;
    now.handler_time = pool_.time_used();
    const auto leases = member_->group().counters();
    now.checkpoints_written = leases.checkpoints_written;
    now.leases_taken = leases.leases_taken;
    now.leases_released = leases.leases_released;
    now.leases_lost = leases.leases_lost;
    now.shards_finished = leases.shards_finished;
    now.gaps_reported = counters.gaps_reported;
    now.shards_stopped = counters.shards_stopped;
    now.records_at_risk = member_->group().records_at_risk();
    now.bytes_in_memory = counters.bytes_in_memory;
    now.idle = driver_->idle();
    sum_up(driver_->progress(), now);
    now.trouble = trouble();
    if (!now.trouble && total_ == 0) now.trouble = not_a_member_yet();
    if (!now.trouble) now.trouble = member_->group().unreadable_worker();
    return now;
}

std::optional<error> consumer_run::trouble() const {
    const auto& group = member_->group();
    if (auto why = group.trouble()) return why;
    if (auto why = not_listed_yet(group, first_look_)) return why;
    return driver_->trouble();
}

}  // namespace

consumer::consumer(consumer_settings settings, record_handler& handler)
    : impl_(new impl{.settings = std::move(settings), .handler = handler}) {}

consumer::~consumer() = default;

result<consumer_status> consumer::run(const std::stop_token& stop) {
    {
        const std::lock_guard lock(impl_->mutex);
        if (std::exchange(impl_->ran, true)) {
            return fail(errc::invalid_argument, "this consumer has run already; make a new one");
        }
    }
    const auto urls = check(impl_->settings);
    if (!urls) return tl::unexpected(urls.error());
    std::function<void(const consumer_status&)> publish = [this](const consumer_status& now) {
        {
            const std::lock_guard lock(impl_->mutex);
            impl_->status = now;
        }
        if (impl_->settings.on_progress) impl_->settings.on_progress(now);
    };
    consumer_run run(impl_->settings, std::move(publish));
    if (auto opened = run.open(*urls, impl_->handler); !opened) {
        return tl::unexpected(std::move(opened.error()));
    }
    const impl::can_abort while_it_runs(*impl_, [&run](error why) { run.abort(std::move(why)); });
    return run.go(stop);
}

void consumer::abort(error why) {
    const std::lock_guard lock(impl_->mutex);
    if (impl_->abort) impl_->abort(std::move(why));
}

consumer_status consumer::status() const {
    const std::lock_guard lock(impl_->mutex);
    return impl_->status;
}

}  // namespace millrace
