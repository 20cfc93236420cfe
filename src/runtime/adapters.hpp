/// Opens what an address names, on a host. Each object has a connection of its own, so that the keeper and
/// the loop never wait for each other. Nothing is read yet; a missing or broken file shows at the first
/// request.
#pragma once

#include "consumer_driver.hpp"
#include "group/kept_positions.hpp"
#include "port/event_sink.hpp"
#include "port/group_key.hpp"
#include "port/group_leader.hpp"
#include "port/host.hpp"
#include "port/lease_store.hpp"
#include "port/outbox_admin.hpp"
#include "port/outbox_source.hpp"
#include "port/record_source.hpp"
#include "port/stream_admin.hpp"

#include <millrace/error.hpp>
#include <millrace/options.hpp>
#include <millrace/outbox_look.hpp>
#include <millrace/time.hpp>
#include <millrace/url.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace millrace {

/// The name under which the relays of an outbox share its lease, and of the one shard there.
inline constexpr const char* outbox_group = "outbox";

/// How a file is opened. A server has rights of its own.
enum class file_use : std::uint8_t {
    read,    ///< It must exist, and need not be writable.
    append,  ///< As `write`, to add events alone: of a server, the rights of an application will do.
    write,   ///< It must exist.
    create   ///< A missing one is made.
};

struct store_use {
    file_use use{file_use::create};

    /// How long a request waits for others who keep a file locked.
    milliseconds busy_timeout{1'000};

    /// What a server does for us, and keeps locked meanwhile, ends below it; a request to DynamoDB lasts no
    /// longer than a fifth of it, so that a heartbeat that hangs is tried again in time.
    nanoseconds lease{std::chrono::seconds{10}};
};

/// For whoever holds leases: nothing waits so long for a file that no heartbeat could be tried again in time.
[[nodiscard]] store_use used_under(nanoseconds lease);

/// `where` is a state, or an outbox: then the lease is kept beside the table, in a file that must exist.
[[nodiscard]] result<std::unique_ptr<lease_store>> open_lease_store(
    const url& where, const group_key& group, host& home, store_use how = {}
);

/// The groups of a stream that a state knows; reads the file at once. Empty for a state in memory.
[[nodiscard]] result<std::vector<std::string>> known_groups(const url& state, const std::string& stream);

/// The rows that another consumer keeps under a name; reads them at once.
[[nodiscard]] result<std::vector<kept_row>> kept_positions(
    const url& where, kept_by whom, const std::string& under
);

/// The schema of a state whose checkpoints a handler can write in transactions of its own; `invalid_config`
/// for any other.
[[nodiscard]] result<std::string> checkpoint_schema(const url& state);

struct opened_outbox {
    std::unique_ptr<outbox_source> source;

    std::function<void(completion<outbox_look>)> look;  ///< Valid while the source lives, as the next.
    std::function<void(completion<void>)> check;        ///< Whether it could be read now.
};
/// `lease` as in `store_use`.
[[nodiscard]] result<opened_outbox> open_outbox(const url& where, host& home, nanoseconds lease);

/// On this thread, at once: `not_found` when there is no outbox. A call fails with `unavailable` when others
/// keep the database locked for longer than `wait`.
[[nodiscard]] result<std::unique_ptr<outbox_admin>> open_outbox_admin(
    const url& where, milliseconds wait, file_use use = file_use::write
);

/// Makes or upgrades the tables of an outbox where they are missing, at once; `wait` as above.
[[nodiscard]] result<void> init_outbox(const url& where, milliseconds wait);

/// Names of the application and of the relay as roles of the database, where it has roles.
struct outbox_roles {
    std::string writer;
    std::string relay;
};

/// The SQL that `init_outbox` would run on an empty database, with the least rights of the roles. PostgreSQL
/// is asked.
[[nodiscard]] result<std::string> outbox_script(const url& where, const outbox_roles& roles);

struct sink_options {
    /// When set, each record gets the header `millrace-outbox` with "EPOCH ID", by which a consumer can
    /// drop what a woken zombie still sends.
    std::optional<std::string> outbox;

    /// To a partition whose last acknowledgement is older, one row goes first; of sinks with partitions.
    nanoseconds idle_partition{std::chrono::minutes{1}};

    /// Rows and bytes that may be handed over and not yet acknowledged: what the sink must hold.
    std::size_t window_rows{10'000};
    std::size_t window_bytes{4 << 20};
};

struct opened_sink {
    std::unique_ptr<event_sink> sink;

    /// The first look: whether it is there and usable. Valid while the sink lives.
    std::function<void(completion<void>)> look;
};
[[nodiscard]] result<opened_sink> open_sink(const url& where, host& home, const sink_options& options = {});

/// `sink` names the brokers where the options name none, `worker` this member likewise.
[[nodiscard]] result<std::unique_ptr<group_leader>> open_group_leader(
    const leadership_options& options, const worker_id& worker, const url& sink, host& home
);
[[nodiscard]] result<std::unique_ptr<record_source>> open_source(const url& where, host& home);

/// `wait` is how long others may keep a local stream locked, or a change of a stream in the cloud may take.
[[nodiscard]] result<std::unique_ptr<stream_admin>> open_stream_admin(
    const url& where, milliseconds wait, file_use use = file_use::write
);

struct opened_dead_letters {
    std::unique_ptr<dead_letter_sink> sink;
    std::function<void(completion<void>)> look;  ///< As of a sink.
};

/// `origin` is the stream that the records come from: the topic of what goes to an outbox.
[[nodiscard]] result<opened_dead_letters> open_dead_letters(
    const url& where, const std::string& origin, host& home
);

}  // namespace millrace
