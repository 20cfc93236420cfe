/// Everything that a seed decides before a run begins: sizes, options, and which faults how often.
#pragma once

#include "fake_sink.hpp"
#include "fake_stream.hpp"
#include "group/options.hpp"
#include "group/session.hpp"
#include "link.hpp"
#include "relay/options.hpp"
#include "shard/options.hpp"

#include <cstdint>

namespace millrace::sim {

struct writer_habits {
    std::size_t events{100};
    std::size_t keys{6};
    nanoseconds until{10s};   ///< Events are committed from the start until then.
    nanoseconds open_max{0};  ///< A transaction stays open so long; zero: commits at once, in order of id.
    std::uint32_t rolled_back{0};  ///< Per cent of transactions.
    std::uint32_t drawn_ahead{0};  ///< Per cent of unserialised rows whose id is drawn before the INSERT.
    std::uint32_t cached_ids{0};   ///< Per cent of rows before which ids are skipped.
    std::uint32_t low_ids{0};      ///< Per cent of rows that fill an id skipped earlier.
    std::uint32_t keyless{10};
    std::uint32_t guilty{0};       ///< Per cent of rows that the sink refuses until it is mended.
    std::uint32_t reluctant{0};    ///< Per cent of rows that the sink refuses a few times.
    std::uint32_t malformed{0};    ///< Per cent of rows that cannot be sent.
    std::uint32_t other_topic{0};  ///< Per cent of rows for a topic that nobody consumes.
    std::uint32_t lost_topic{0};   ///< Per cent of rows for a topic that is missing until it is mended.
};

/// Chances in a hundred, for each call of the handler or each record.
struct handler_habits {
    std::uint32_t fails{0};
    std::uint32_t throws{0};
    std::uint32_t later{0};    ///< Acknowledges after it has returned, in any order.
    std::uint32_t stuck{0};    ///< Of those acknowledgements: come only when it is mended.
    std::uint32_t partial{0};  ///< Of the failing calls: acknowledges a part before.
    std::uint32_t poison{0};   ///< Of the records: fail every time, until mended unless dead-lettered.
    bool commits{
        false};  ///< Writes the checkpoint itself, with the effects; then nothing is `later` or `partial`.
    nanoseconds waits_max{2ms};   ///< A call waits so long for a thread.
    nanoseconds takes_max{20ms};  ///< A call or a later acknowledgement takes up to so long.
};

/// Faults of whole processes, each about every so often; zero: never.
struct process_faults {
    nanoseconds crash_every{0};
    nanoseconds pause_every{0};
    nanoseconds pause_max{0};
    nanoseconds stall_every{0};  ///< Only the loop stands still; the keeper goes on.
    nanoseconds stop_every{0};   ///< Stopped cleanly, and started again.
    nanoseconds twin_every{0};   ///< A second process is started under a worker id in use.
    nanoseconds reshard_every{0};
    nanoseconds outage_every{0};  ///< A service is down for a while.
    nanoseconds replay_every{0};  ///< Dead letters are put back.
    nanoseconds trim_every{0};    ///< The stream forgets records, handled or not.
    nanoseconds keeps{0};         ///< For so long it keeps them.
    nanoseconds clock_every{0};   ///< A wall clock jumps by hours.
};

struct scenario {
    std::uint64_t seed{0};
    bool faulty{true};       ///< Without any fault there must be no duplicate either.
    bool sick_shard{false};  ///< One shard does not answer while the faults last; all else must go on.
    bool quiet{false};       ///< No process and no lease store fails: checkpoints must be punctual.
    std::size_t workers{3};
    std::size_t relays{2};
    bool one_machine{false};
    nanoseconds faults_until{15s};
    nanoseconds settles_within{60s};
    std::int32_t drift_per_million{0};  ///< At most, either way.

    session_options session;
    group_options group;
    group_options relay_group;
    shard_options shard;
    relay_options relay;

    faults store;
    faults stream;
    faults outbox;
    faults sink;
    bool outbox_signals{false};  ///< As SQLite does and PostgreSQL does not.
    stream_options topic;
    sink_options broker;

    writer_habits writers;
    handler_habits handler;
    process_faults processes;
};

/// Most options are left at a plain value in most runs, so that faults also meet each other alone.
[[nodiscard]] scenario draw_scenario(std::uint64_t seed);

}  // namespace millrace::sim
