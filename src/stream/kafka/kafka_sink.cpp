#include "kafka_sink.hpp"

#include "kafka_conf.hpp"
#include "main_line.hpp"
#include "probe_line.hpp"
#include "sink_parts.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <thread>
#include <utility>

#include <fmt/core.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace millrace {

using kafka::topic_facts;

namespace {

constexpr std::size_t topics_known_max = 10'000;

struct text_hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept {
        return std::hash<std::string_view>{}(text);
    }
};

/// A number that the user set, already checked by librdkafka.
std::optional<std::size_t> number_of(const kafka_address& cluster, std::string_view property) {
    const auto* const text = cluster.find(property);
    std::size_t value = 0;
    if (text == nullptr) return std::nullopt;
    const auto [end, fault] = std::from_chars(text->data(), text->data() + text->size(), value);
    return fault == std::errc{} && end == text->data() + text->size() ? std::optional(value) : std::nullopt;
}

/// Of a topic that was not looked at yet: only what the client takes bounds a row.
const topic_facts& unknown_topic() {
    static const auto facts = [] {
        topic_facts any;
        any.row_bytes_max = any.batch_bytes_max = std::numeric_limits<std::size_t>::max();
        return any;
    }();
    return facts;
}

error closed_error() {
    return {errc::cancelled, retry_advice::never, false, "the sink was closed before the row was published"};
}

}  // namespace

result<void> kafka_sink_options::validate() const {
    const struct {
        const char* name;
        std::size_t value;
        std::size_t most;
    } sizes[] = {
        {"queued_rows_max", queued_rows_max, 10'000'000},
        {"queued_kbytes_max", queued_kbytes_max, 2'147'483'647},
        {"request_rows_max", request_rows_max, 1'000'000},
        {"request_bytes_max", request_bytes_max, 1U << 30U},
        {"requests_in_flight_max", requests_in_flight_max, 100'000},
    };
    for (const auto& size : sizes) {
        if (size.value == 0 || size.value > size.most)
            return fail(
                errc::invalid_config,
                fmt::format("Kafka option {} is {}; it must be 1 to {}", size.name, size.value, size.most)
            );
    }
    if (idle_partition <= nanoseconds::zero() || refresh_every <= nanoseconds::zero() ||
        settle_limit <= nanoseconds::zero() || silence <= nanoseconds::zero() ||
        look_limit <= milliseconds::zero())
        return fail(
            errc::invalid_config,
            "Kafka options idle_partition, refresh_every, settle_limit, silence and look_limit must be above "
            "0"
        );
    return {};
}

struct kafka_sink::impl {
    impl(host& home, kafka_address cluster, kafka_sink_options options, kafka::partitioner by)
        : parts(home, std::move(cluster), std::move(options), by), main(parts), probe(parts) {
        parts.known_on_host = [this](const std::string& name, const topic_facts& facts) {
            if (known.size() >= topics_known_max) known.clear();  // only suspicions are lost
            known.insert_or_assign(name, facts);
        };
    }

    [[nodiscard]] result<void> start();
    void run();
    void turn();
    void on_look(const std::string& topic, result<topic_facts> facts);
    void refresh(mono_time now);
    void watch(mono_time now);
    void count();
    void accept(kafka::request what);
    void reset(completion<void> done);
    void purge(const completion<void>& done);

    void to_sink(std::function<void()> what) {
        {
            const std::lock_guard lock(mutex);
            inbox.push_back(std::move(what));
        }
        wake();
    }
    void wake() const {
        const std::uint64_t one = 1;
        (void)!write(parts.wake, &one, sizeof one);  // only fails when it is full, that is awake
    }

    kafka::sink_parts parts;
    kafka::main_line main;
    kafka::probe_line probe;
    mono_time refresh_at{};
    mono_time watch_at{};
    bool unwell{false};  ///< Some partition is.
    bool winding_down{false};

    // The host's.
    std::unordered_map<std::string, topic_facts, text_hash, std::equal_to<>> known;

    std::mutex mutex;
    std::vector<std::function<void()>> inbox;  // guarded by mutex
    bool ending{false};                        // guarded by mutex
    bool closed{false};                        // the thread's, then the host's
    std::thread thread;
};

result<void> kafka_sink::impl::start() {
    parts.wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (parts.wake < 0)
        return fail(errc::out_of_space, "no eventfd for the Kafka sink; raise the limit of open files");
    parts.lookup = std::make_unique<kafka::topic_lookup>(
        parts.cluster,
        parts.log,
        parts.options.look_limit,
        [this](const std::string& topic, result<topic_facts> facts) {
            to_sink([this, topic, facts = std::move(facts)] { on_look(topic, facts); });
        }
    );
    thread = std::thread([this] { run(); });
    return {};
}

void kafka_sink::impl::run() {
    for (;;) {
        {
            const std::lock_guard lock(mutex);
            if (ending) break;
        }
        turn();
        const auto now = parts.home.now();
        auto due = std::min(main.due(), refresh_at);
        if (unwell || main.handed_over() + probe.handed_over() > 0) due = std::min(due, watch_at);
        if (probe.waits()) due = std::min(due, now + std::chrono::milliseconds{100});
        const auto wait = std::chrono::ceil<milliseconds>(
            std::clamp(due - now, nanoseconds{0}, nanoseconds{std::chrono::minutes{1}})
        );
        pollfd readable{parts.wake, POLLIN, 0};
        (void)poll(&readable, 1, static_cast<int>(wait.count()));  // an interruption is as good as a wake-up
        std::uint64_t count = 0;
        (void)!read(parts.wake, &count, sizeof count);
    }
    main.close(parts.home.now());
    probe.close();
    closed = true;
}

void kafka_sink::impl::turn() {
    std::vector<std::function<void()>> jobs;
    {
        const std::lock_guard lock(mutex);
        jobs.swap(inbox);
    }
    const auto now = parts.home.now();
    main.serve(now);
    for (auto& job : jobs)
        job();
    main.serve(now);
    probe.serve(now);
    refresh(now);
    watch(now);
    count();
}

void kafka_sink::impl::accept(kafka::request what) {
    auto r = std::make_unique<kafka::request>(std::move(what));
    if (closed || r->rows.empty()) {
        publish_outcome outcome;
        for (const auto& one : r->rows)
            outcome.failures.push_back({one.row->id, closed_error()});
        parts.home.post([done = std::move(r->done), outcome] { done(outcome); });
    } else if (r->where == channel::main) {
        main.publish(std::move(r));
    } else {
        probe.publish(std::move(r), parts.home.now());
    }
}

void kafka_sink::impl::reset(completion<void> done) {
    if (!closed) return main.reset(std::move(done));
    parts.home.post([done = std::move(done)] { done(tl::unexpected(closed_error())); });
}

// Both channels complete on the host.
void kafka_sink::impl::purge(const completion<void>& done) {
    auto first = std::make_shared<std::optional<result<void>>>();
    const completion<void> both = [first, done](result<void> outcome) {
        if (!*first) {
            *first = std::move(outcome);
        } else {
            done(outcome ? std::move(**first) : std::move(outcome));
        }
    };
    if (closed) {
        parts.home.post([both] { both({}); });
    } else {
        probe.purge(both);
    }
    reset(both);
}

void kafka_sink::impl::on_look(const std::string& name, result<topic_facts> facts) {
    const auto now = parts.home.now();
    if (closed) return;
    auto& topic = parts.topic(name);
    topic.asking = false;
    if (!facts) {
        parts.on_trouble(facts.error());
        return;
    }
    const auto before = topic.facts;
    const auto first = !std::exchange(topic.known, true);
    topic.facts.renew(*facts);
    parts.on_answer();
    if (first || topic.facts != before) parts.publish_facts(topic);
    main.on_topic(topic, before);
    probe.on_topic(topic, now);
    if (!topic.facts.seen_unwell.empty()) unwell = true;
}

void kafka_sink::impl::refresh(mono_time now) {
    if (now < refresh_at) return;
    refresh_at = now + parts.options.refresh_every;
    if (winding_down) return;
    for (auto& [name, topic] : parts.topics) {
        if (topic->known && topic->used + 2 * parts.options.refresh_every >= now) parts.ask(*topic, now);
    }
}

// Whoever says nothing is asked about, and whoever is unwell, whether that has passed.
void kafka_sink::impl::watch(mono_time now) {
    constexpr auto every = std::chrono::seconds{1};
    if (now < watch_at) return;
    watch_at = now + every;
    unwell = false;
    if (winding_down) return;
    for (auto& [name, topic] : parts.topics) {
        const auto sick =
            !topic->facts.seen_unwell.empty() && topic->used + 2 * parts.options.refresh_every >= now;
        unwell = unwell || sick;
        if (sick || main.is_silent(*topic, now) || probe.is_silent(*topic, now)) parts.ask(*topic, now);
    }
}

void kafka_sink::impl::count() {
    const std::lock_guard lock(parts.counting);
    parts.counts.queued = main.handed_over() + probe.handed_over();
    parts.counts.waiting = main.waiting();
}

result<std::unique_ptr<kafka_sink>> kafka_sink::open(
    host& home, kafka_address cluster, kafka_sink_options options
) {
    if (auto valid = options.validate(); !valid) return tl::unexpected(std::move(valid.error()));
    if (auto valid = kafka::check_properties(cluster); !valid)
        return tl::unexpected(std::move(valid.error()));
    const auto* const hashing = cluster.find("partitioner");
    auto by = kafka::partitioner::named(hashing == nullptr ? "murmur2_random" : *hashing);
    if (!by) return tl::unexpected(std::move(by.error()));
    auto made = std::make_unique<impl>(home, std::move(cluster), std::move(options), *by);
    auto& parts = made->parts;
    if (const auto limit = number_of(parts.cluster, "message.max.bytes")) {
        parts.main_bytes_max = parts.probe_bytes_max = *limit;
        parts.limit_is_users = true;
    }
    parts.batch_bytes_max = number_of(parts.cluster, "batch.size").value_or(256 << 10);
    parts.batch_bytes_max = std::min(parts.batch_bytes_max, parts.main_bytes_max);
    if (auto running = made->start(); !running) return tl::unexpected(std::move(running.error()));
    return std::unique_ptr<kafka_sink>(new kafka_sink(std::move(made)));
}

kafka_sink::kafka_sink(std::unique_ptr<impl> made) : impl_(std::move(made)) {}

kafka_sink::~kafka_sink() {
    {
        const std::lock_guard lock(impl_->mutex);
        impl_->ending = true;
    }
    impl_->wake();
    impl_->thread.join();
    impl_->parts.lookup.reset();
    close(impl_->parts.wake);
    // Requests that the thread never saw.
    for (auto& job : impl_->inbox)
        job();
}

void kafka_sink::publish(
    channel where, std::vector<outgoing_row> rows, epoch mine, completion<publish_outcome> done
) {
    auto* const me = impl_.get();
    auto what = std::make_shared<kafka::request>();
    what->rows = std::move(rows);
    what->done = std::move(done);
    what->where = where;
    if (me->parts.options.outbox)
        what->header = fmt::format("{} {}", mine.value(), *me->parts.options.outbox);
    me->to_sink([me, what] { me->accept(std::move(*what)); });
}

void kafka_sink::reset_main(completion<void> done) {
    auto* const me = impl_.get();
    me->to_sink([me, done = std::move(done)] { me->reset(done); });
}

void kafka_sink::purge(completion<void> done) {
    auto* const me = impl_.get();
    me->to_sink([me, done = std::move(done)] { me->purge(done); });
}

void kafka_sink::wind_down() {
    auto* const me = impl_.get();
    me->parts.lookup->wind_down();
    me->to_sink([me] { me->winding_down = true; });
}

void kafka_sink::look(completion<void> done, std::string topic) {
    auto& home = impl_->parts.home;
    impl_->parts.lookup->look(std::move(topic), [&home, done = std::move(done)](result<void> outcome) {
        home.post([done, outcome] { done(outcome); });
    });
}

std::optional<error> kafka_sink::suspect(const outbox_row& row) const {
    if (!row.malformed.empty())
        return error{errc::refused_record, retry_advice::never, false, std::string(row.malformed)};
    const auto found = impl_->known.find(row.topic);
    const auto& facts = found == impl_->known.end() ? unknown_topic() : found->second;
    const auto& parts = impl_->parts;
    const auto extra = parts.options.outbox ? outbox_header.size() + parts.options.outbox->size() + 24 : 0;
    if (auto why = kafka::suspicion(facts, row, parts.main_bytes_max, extra)) return why;
    if (facts.unwell.empty() || facts.partitions == 0) return std::nullopt;
    const auto place = kafka::place_of(row, facts, parts.by, 0);
    if (!facts.is_unwell(place)) return std::nullopt;
    return kafka::unwell_error(row.topic, place);
}

event_sink::capacity kafka_sink::limits() const {
    const auto& o = impl_->parts.options;
    return {o.request_rows_max, o.request_bytes_max, o.requests_in_flight_max};
}

kafka_counters kafka_sink::counters() const {
    const std::lock_guard lock(impl_->parts.counting);
    return impl_->parts.counts;
}

}  // namespace millrace
