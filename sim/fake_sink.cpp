#include "fake_sink.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace millrace::sim {

fake_stream& sink_service::topic(
    const std::string& name, scheduler& world, rng& random, stream_options options
) {
    auto& stream = topics_[name];
    if (!stream) stream = std::make_unique<fake_stream>(world, random, options);
    return *stream;
}

std::optional<error> sink_service::judge(const outbox_row& row) const {
    if (!topics_.contains(row.topic)) {
        return error{
            errc::refused_topic,
            retry_advice::never,
            false,
            fmt::format("topic \"{}\" does not exist at the sink; create it, then replay", row.topic)};
    }
    return verdict ? verdict(row) : std::nullopt;
}

void sink_service::append(const outbox_row& row, epoch under) {
    const auto owned = [](const std::optional<std::string_view>& bytes) {
        return bytes ? std::optional(std::string(*bytes)) : std::nullopt;
    };
    std::vector<header> headers;
    for (const auto& h : row.headers)
        headers.push_back({std::string(h.name), owned(h.value)});
    topics_.find(row.topic)->second->append(owned(row.key), owned(row.value), std::move(headers));
    if (observer_) observer_(row, under);
}

struct fake_sink::parcel {
    std::vector<outgoing_row> rows;
    epoch mine;
    completion<publish_outcome> done;
    fate drawn{fate::normal};
    nanoseconds back{0};
    bool answered{false};
};

// One life of the main channel at the broker. Requests land in the order in which they were sent.
struct fake_sink::pipe {
    enum class state : std::uint8_t { open, refused, cut };

    state at_broker{state::open};
    bool resetting{false};
    bool cut_applies{false};  // what follows a lost reply still lands, up to some request
    mono_time last_sent{};
    world_time last_landing{0};
    std::size_t waiting{0};     // not yet answered
    std::size_t on_the_way{0};  // not yet landed
};

fake_sink::fake_sink(
    sink_service& service,
    scheduler& world,
    host& client,
    rng& random,
    const faults& plan,
    sink_options options
)
    : service_(service),
      client_(client),
      link_(world, client, random, plan, "the sink"),
      options_(options),
      main_(std::make_shared<pipe>()) {}

fake_sink::~fake_sink() = default;

namespace {

publish_outcome purged(const std::vector<outgoing_row>& rows, std::size_t from = 0) {
    publish_outcome outcome;
    for (auto i = from; i < rows.size(); ++i) {
        outcome.failures.push_back(
            {rows[i].row->id,
             {errc::purged, retry_advice::now, false, "an earlier row of the channel failed; not tried"},
             false}
        );
    }
    return outcome;
}

// Appends rows up to the first refusal, `together` at a time.
publish_outcome append_in_order(
    sink_service& service, const std::vector<outgoing_row>& rows, epoch mine, std::size_t together
) {
    for (std::size_t first = 0; first < rows.size(); first += together) {
        const auto end = std::min(first + together, rows.size());
        std::optional<error> refusal;
        for (auto i = first; i < end && !refusal; ++i)
            refusal = service.judge(*rows[i].row);
        if (!refusal) {
            for (auto i = first; i < end; ++i)
                service.append(*rows[i].row, mine);
            continue;
        }
        auto outcome = purged(rows, end);
        for (auto i = first; i < end; ++i)
            outcome.failures.push_back(
                {rows[i].row->id, *refusal, end - first > 1, refusal->code == errc::unavailable}
            );
        std::sort(outcome.failures.begin(), outcome.failures.end(), [](const auto& a, const auto& b) {
            return a.id < b.id;
        });
        return outcome;
    }
    return {};
}

}  // namespace

void fake_sink::publish(
    channel where, std::vector<outgoing_row> rows, epoch mine, completion<publish_outcome> done
) {
    if (where == channel::probe) {
        if (rows.size() != 1) {
            link_.reply_at<publish_outcome>(
                link_.world().now(), std::move(done), fail(errc::invalid_argument, "a probe is one row alone")
            );
            return;
        }
        link_.change<publish_outcome>(
            "probe",
            [&service = service_, rows = std::move(rows), mine]() -> result<publish_outcome> {
                return append_in_order(service, rows, mine, 1);
            },
            std::move(done)
        );
        return;
    }
    auto what = std::make_shared<parcel>(parcel{std::move(rows), mine, std::move(done)});
    what->drawn = link_.draw("publish", true);
    what->back = link_.latency();
    ++main_->waiting;
    // The client library sends from the process itself: not while that is paused, but after it.
    main_->last_sent = std::max(main_->last_sent, client_.now() + link_.upto(options_.client_delay_max));
    client_.call_at(main_->last_sent, alive_.guard([this, what] { send(what); }));
}

void fake_sink::send(const std::shared_ptr<parcel>& what) {
    auto& world = link_.world();
    if (main_->resetting) {
        answer(what, purged(what->rows), world.now());
        return;
    }
    auto landing = std::max(main_->last_landing, world.now() + link_.latency());
    if (what->drawn == fate::late) landing += link_.plan().timeout;
    main_->last_landing = landing;
    ++main_->on_the_way;
    const auto lost = what->drawn == fate::lost_request || what->drawn == fate::lost_reply;
    if (lost || what->drawn == fate::late) give_up_at(what, world.now() + link_.plan().timeout);
    // It lands whatever becomes of the client.
    world.at(
        landing,
        [&service = service_,
         pipe = main_,
         what,
         together = options_.blamed_rows,
         coin = link_.random().chance(50),
         landed = alive_.guard([this, what](const std::optional<result<publish_outcome>>& outcome) {
             if (outcome) answer(what, *outcome, link_.world().now() + what->back);
             complete_resets();
         })] { landed(land(service, *pipe, *what, together, coin)); }
    );
}

// What happens at the broker; nothing when no reply will come.
std::optional<result<publish_outcome>> fake_sink::land(
    sink_service& service, pipe& main, parcel& what, std::size_t together, bool coin
) {
    --main.on_the_way;
    if (main.at_broker == pipe::state::refused) return purged(what.rows);
    if (main.at_broker == pipe::state::cut) {
        main.cut_applies = main.cut_applies && coin;
        if (main.cut_applies) {
            main.cut_applies = append_in_order(service, what.rows, what.mine, together).failures.empty();
        }
        return tl::unexpected<error>(link_error(fate::lost_reply, "the sink", "publish", true));
    }
    switch (what.drawn) {
        case fate::unavailable:
        case fate::throttled:
            main.at_broker = pipe::state::refused;
            return tl::unexpected<error>(link_error(what.drawn, "the sink", "publish", true));
        case fate::lost_request:
            main.at_broker = pipe::state::cut;
            return std::nullopt;
        case fate::lost_reply:
        case fate::late:
            main.at_broker = pipe::state::cut;
            main.cut_applies = append_in_order(service, what.rows, what.mine, together).failures.empty();
            return std::nullopt;
        case fate::normal:
        case fate::doubled:
            break;
    }
    auto outcome = append_in_order(service, what.rows, what.mine, together);
    if (!outcome.failures.empty()) main.at_broker = pipe::state::refused;
    return outcome;
}

void fake_sink::give_up_at(const std::shared_ptr<parcel>& what, world_time when) {
    answer(what, tl::unexpected<error>(link_error(fate::lost_reply, "the sink", "publish", true)), when);
}

void fake_sink::answer(
    const std::shared_ptr<parcel>& what, result<publish_outcome> outcome, world_time when
) {
    if (std::exchange(what->answered, true)) return;
    link_.reply_at<publish_outcome>(
        when,
        [this, pipe = main_, done = what->done](result<publish_outcome> r) {
            --pipe->waiting;
            done(std::move(r));
            complete_resets();
        },
        std::move(outcome)
    );
}

void fake_sink::reset_main(completion<void> done) {
    const auto drawn = link_.draw("reset_main", false);
    if (drawn != fate::normal) {
        link_.reply_at<void>(
            link_.world().now() + link_.latency(),
            std::move(done),
            tl::unexpected<error>(link_error(fate::unavailable, "the sink", "reset_main", true))
        );
        return;
    }
    main_->resetting = true;
    resets_.push_back(std::move(done));
    link_.world().at(link_.world().now() + link_.latency(), alive_.guard([this] { complete_resets(); }));
}

void fake_sink::complete_resets() {
    if (resets_.empty() || main_->waiting > 0 || main_->on_the_way > 0) return;
    main_ = std::make_shared<pipe>();
    for (auto& done : std::exchange(resets_, {}))
        link_.reply_at<void>(link_.world().now(), std::move(done), {});
}

std::optional<error> fake_sink::suspect(const outbox_row& row) const {
    const auto dice = rng{static_cast<std::uint64_t>(row.id.value())}.below(100);
    if (dice >= options_.suspected) return std::nullopt;
    return error{
        errc::refused_record,
        retry_advice::never,
        false,
        fmt::format("row {} looks larger than the sink may take", row.id.value())};
}

}  // namespace millrace::sim
