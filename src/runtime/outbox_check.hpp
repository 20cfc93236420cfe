/// Encodes what is in an outbox by the rules for schemas, without sending, deleting or registering anything.
///
/// Blocks until everything was looked at once. Needs no lease: a relay may work beside it.
#pragma once

#include <millrace/error.hpp>
#include <millrace/log.hpp>
#include <millrace/names.hpp>
#include <millrace/options.hpp>
#include <millrace/schemas.hpp>
#include <millrace/time.hpp>
#include <millrace/url.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace millrace {

struct outbox_check_settings {
    url outbox;
    schema_settings schemas;
    poison_policy on_poison{poison_policy::park_key};
    std::size_t listed_max{100};
    nanoseconds wait{std::chrono::seconds{10}};  ///< For the registry, all in all.
};

/// What becomes of a row that a relay would not deliver.
enum class row_fate : std::uint8_t {
    parked,
    waits,  ///< Such as for a subject that the registry does not have, or behind a row at which it stops.
    stops   ///< The relay would stop there, by its policy.
};

/// A row that a relay would not deliver.
struct unfit_row {
    row_id id;
    std::string topic;
    std::optional<std::string> key;
    row_fate fate{row_fate::parked};
    std::string reason;  ///< As among the dead letters, or the kind of what it waits for.
    std::string detail;
};

struct outbox_check_report {
    std::uint64_t rows{0};  ///< In the outbox; those of paused topics are not looked at.
    std::uint64_t fit{0};   ///< Of them, those that a rule concerns and that would go out by it.
    std::uint64_t parked{0};
    std::uint64_t waiting{0};
    std::uint64_t stopping{0};
    std::vector<unfit_row> first;  ///< Of the last three; at most `listed_max`.
};

/// `settings` are valid. Errors: of the outbox, and of files of the rules.
[[nodiscard]] result<outbox_check_report> check_outbox(const outbox_check_settings& settings, log_sink& log);

}  // namespace millrace
