#include "kinesis_sink.hpp"

#include "kinesis_listing.hpp"
#include "put_call.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace millrace {

namespace {

error cancelled() {
    return {errc::cancelled, retry_advice::never, false, "the request was given up because the sink ended"};
}

/// What is published as one and completed once.
struct request {
    completion<publish_outcome> done;
    publish_outcome outcome;
    std::size_t left{0};
};

}  // namespace

struct kinesis_sink::impl : std::enable_shared_from_this<impl> {
    impl(host& on, kinesis_address address, std::unique_ptr<aws::api> api, kinesis_sink_options given)
        : home(on), to(std::move(address)), options(given), queue(given.calls), calls(std::move(api)) {}
    ~impl();

    [[nodiscard]] std::string_view stream_of(const outbox_row& row) const {
        return to.stream.empty() ? row.topic : std::string_view(to.stream);
    }
    [[nodiscard]] std::optional<error> refusal(const outbox_row& row) const {
        return why_refused(row, options.losses, to.stream.empty());
    }
    [[nodiscard]] kinesis_address address_of(const std::string& stream) const {
        return {.region = to.region, .stream = stream, .endpoint = to.endpoint};
    }

    void publish_main(std::vector<outgoing_row> rows, completion<publish_outcome> done);
    void publish_probe(std::vector<outgoing_row> rows, completion<publish_outcome> done);
    void settle(std::vector<put_queue::settled> rows, bool shared_blame = false);
    void pump();
    void wake_when_due();
    void told(const std::shared_ptr<put_queue::call>& what, put_answer answer);
    void finish_resets();
    void warn_of_headers(const outbox_row& row);

    host& home;
    const kinesis_address to;
    const kinesis_sink_options options;
    put_queue queue;
    std::unordered_map<put_queue::request_id, request> requests;
    put_queue::request_id last_request{0};
    std::vector<completion<void>> resets;
    std::unordered_map<std::uint64_t, completion<publish_outcome>> probes;
    std::uint64_t last_probe{0};
    std::optional<host::timer> timer;
    bool said_headers{false};
    lifetime alive;
    kinesis_calls calls;  // the last one: its end completes calls, which use the others
};

kinesis_sink::impl::~impl() {
    if (timer) home.cancel(*timer);
    const auto give_up = [this](completion<publish_outcome>& done) {
        home.post([done = std::move(done)] { done(tl::unexpected(cancelled())); });
    };
    for (auto& [id, one] : requests)
        give_up(one.done);
    for (auto& [id, done] : probes)
        give_up(done);
    for (auto& done : resets)
        home.post([done = std::move(done)] { done(tl::unexpected(cancelled())); });
}

void kinesis_sink::impl::warn_of_headers(const outbox_row& row) {
    const bool lost =
        std::ranges::any_of(row.headers, [](const auto& h) { return h.name != explicit_hash_header; });
    if (!lost || std::exchange(said_headers, true)) return;
    home.log().write(
        log_level::warning,
        "kinesis.headers_dropped",
        {{"topic", std::string(row.topic)},
         {"detail",
          "Kinesis records have no headers; those of this topic, and of others that come, are not published. "
          "Add headers=refuse to the sink's URL to have such rows refused instead"}}
    );
}

void kinesis_sink::impl::publish_main(std::vector<outgoing_row> rows, completion<publish_outcome> done) {
    const auto id = ++last_request;
    requests[id] = {std::move(done), {}, rows.size()};
    std::vector<put_queue::settled> settled;
    for (auto& one : rows) {
        const auto& row = *one.row;
        if (auto why = refusal(row)) {
            queue.refuse(id, std::move(one), std::move(*why), settled);
        } else {
            if (!row.headers.empty()) warn_of_headers(row);
            queue.add(id, std::move(one), stream_of(row), settled);
        }
    }
    if (rows.empty()) {
        home.post([done = std::move(requests[id].done)] { done(publish_outcome{}); });
        requests.erase(id);
    }
    settle(std::move(settled));
    pump();
}

/// Rows were published or failed; requests of which none is left are complete.
void kinesis_sink::impl::settle(std::vector<put_queue::settled> rows, bool shared_blame) {
    for (auto& one : rows) {
        const auto found = requests.find(one.what.request);
        if (found == requests.end()) continue;
        auto& of = found->second;
        if (one.failed) {
            const bool blame = shared_blame && one.failed->code == errc::refused_record;
            of.outcome.failures.push_back({one.what.row.row->id, std::move(*one.failed), blame, one.of_stream}
            );
        }
        if (--of.left > 0) continue;
        auto& failures = of.outcome.failures;
        std::ranges::sort(failures, {}, &row_failure::id);
        home.post([done = std::move(of.done), outcome = std::move(of.outcome)]() mutable {
            done(std::move(outcome));
        });
        requests.erase(found);
    }
}

void kinesis_sink::impl::pump() {
    while (auto next = queue.next(home.now())) {
        const auto what = std::make_shared<put_queue::call>(std::move(*next));
        send_put(
            calls,
            address_of(what->stream),
            what,
            home.random(),
            options.call_timeout,
            [this, weak = weak_from_this(), what](put_answer answer) {
                home.post([weak, what, answer = std::move(answer)]() mutable {
                    if (const auto me = weak.lock()) me->told(what, std::move(answer));
                });
            }
        );
    }
    wake_when_due();
}

void kinesis_sink::impl::wake_when_due() {
    if (timer) home.cancel(*std::exchange(timer, std::nullopt));
    const auto due = queue.due();
    if (due == mono_time::max()) return;
    timer = home.call_at(due, alive.guard([this] {
        timer.reset();
        pump();
    }));
}

void kinesis_sink::impl::told(const std::shared_ptr<put_queue::call>& what, put_answer answer) {
    std::vector<put_queue::settled> settled;
    queue.done(home.now(), home.random(), std::move(*what), std::move(answer.rows), settled);
    settle(std::move(settled), answer.shared_blame);
    for (const auto& why : queue.take_slow()) {
        home.log().write(
            log_level::warning,
            "kinesis.throttled",
            {{"detail",
              why.detail + "; this goes on for seconds, and events of some keys wait meanwhile" +
                  (why.code == errc::throttled
                       ? ": give the stream more shards, or slow down who else writes to it"
                       : ": the service fails, and they are put again until it does not")}}
        );
    }
    finish_resets();
    pump();
}

void kinesis_sink::impl::finish_resets() {
    if (resets.empty() || queue.calls_in_flight() > 0) return;
    queue.open();
    for (auto& done : std::exchange(resets, {}))
        home.post([done = std::move(done)] { done({}); });
}

void kinesis_sink::impl::publish_probe(std::vector<outgoing_row> rows, completion<publish_outcome> done) {
    const auto id = ++last_probe;
    probes[id] = std::move(done);
    const auto tell = [this](auto probe, publish_outcome outcome) {
        home.post([weak = weak_from_this(), probe, outcome = std::move(outcome)]() mutable {
            const auto me = weak.lock();
            if (!me) return;
            auto found = me->probes.extract(probe);
            if (found) found.mapped()(std::move(outcome));
        });
    };
    if (rows.empty()) return tell(id, {});
    const auto& row = *rows.front().row;
    if (auto why = refusal(row)) return tell(id, {{{row.id, std::move(*why), false}}});
    warn_of_headers(row);
    auto what = std::make_shared<put_queue::call>();
    what->stream = stream_of(row);
    what->items.push_back({std::move(rows.front()), 0, 0, 0, {}, 1});
    send_put(
        calls,
        address_of(what->stream),
        what,
        home.random(),
        options.call_timeout,
        [tell, id, of_row = row.id](const put_answer& answer) {
            publish_outcome outcome;
            const auto& only = answer.rows.front();
            if (only.is != put_queue::verdict::put) outcome.failures.push_back({of_row, only.why, false});
            tell(id, std::move(outcome));
        }
    );
}

kinesis_sink::kinesis_sink(
    host& home, kinesis_address to, std::unique_ptr<aws::api> api, kinesis_sink_options options
)
    : impl_(std::make_shared<impl>(home, std::move(to), std::move(api), options)) {}

kinesis_sink::~kinesis_sink() = default;

void kinesis_sink::publish(
    channel where, std::vector<outgoing_row> rows, epoch /*mine*/, completion<publish_outcome> done
) {
    if (where == channel::main) {
        impl_->publish_main(std::move(rows), std::move(done));
    } else {
        impl_->publish_probe(std::move(rows), std::move(done));
    }
}

void kinesis_sink::reset_main(completion<void> done) {
    impl_->resets.push_back(std::move(done));
    std::vector<put_queue::settled> settled;
    impl_->queue.stop(settled);
    impl_->settle(std::move(settled));
    impl_->finish_resets();
    impl_->wake_when_due();
}

std::optional<error> kinesis_sink::suspect(const outbox_row& row) const {
    return impl_->refusal(row);
}

event_sink::capacity kinesis_sink::limits() const {
    const auto& o = impl_->options;
    return {o.request_rows_max, o.request_bytes_max, o.requests_in_flight_max};
}

void kinesis_sink::look(completion<void> done) {
    auto* const me = impl_.get();
    if (me->to.stream.empty()) return me->home.post([done = std::move(done)] { done({}); });
    const auto told = [me, done = std::move(done)](const result<kinesis_stream>& seen) {
        const bool usable = seen || seen.error().code == errc::permission_denied;
        auto how = usable ? result<void>{} : tl::unexpected(seen.error());
        me->home.post([done, how = std::move(how)] { done(how); });
    };
    list_kinesis_stream(me->calls, me->to, me->options.look_timeout, told);
}

}  // namespace millrace
