/// What went wrong, in terms that decide what to do next.
///
/// Everything that the outside can cause is returned as `result<T>`; exceptions are for programming errors.
/// Values are plain data: copy and move them between threads freely.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <tl/expected.hpp>

namespace millrace {

/// The kind of a fault. Callers act on it together with `error::retry` and `error::in_doubt`.
enum class errc : std::uint8_t {
    invalid_argument,   ///< The caller's value is out of range or malformed.
    invalid_config,     ///< Configuration or command line; the process cannot start with it.
    not_found,          ///< A file, stream, shard, table or row does not exist.
    already_exists,     ///< What was to be created is there already.
    conflict,           ///< A conditional write was refused: the row is not as the writer believed.
    not_owner,          ///< The lease is held by another session, or its deadline has passed.
    already_released,   ///< The handle was given back earlier; nothing was sent.
    already_finished,   ///< The shard is closed and fully acknowledged.
    worker_id_taken,    ///< Another live session uses the same worker id.
    expired_cursor,     ///< The read cursor is too old; a new one must be made from the last position.
    position_trimmed,   ///< The position lies before what the stream still holds.
    throttled,          ///< The service asks for fewer requests.
    unavailable,        ///< Not reachable, restarting, locked or timed out.
    permission_denied,  ///< The credentials or the file mode do not allow it.
    out_of_space,       ///< A disk or a quota is full.
    corrupt,            ///< Stored bytes are not what this program writes.
    wrong_version,      ///< Written by a newer or incompatible version.
    refused_record,     ///< The sink will never take this record as it is.
    refused_topic,      ///< The sink will not take any record of this topic.
    purged,             ///< Not tried: an earlier record of the same channel was refused.
    cancelled,          ///< Given up because the caller stops.
    handler_failed,     ///< The user's handler returned or threw an error.
    internal            ///< A broken invariant; please report it.
};

/// Whether the same request can succeed later.
enum class retry_advice : std::uint8_t { never, now, after_delay };

struct error {
    errc code{errc::internal};
    retry_advice retry{retry_advice::never};

    /// The request may have taken effect, or may still do so later. Re-read before deciding.
    bool in_doubt{false};

    /// One sentence for a person: what, where, why, and what to do. Never holds a payload or a secret.
    std::string detail;

    bool operator==(const error&) const = default;
};

template <class T>
using result = tl::expected<T, error>;

/// Shorthand for returning a fault: `return fail(errc::not_found, "stream \"a\" does not exist; ...")`.
[[nodiscard]] inline tl::unexpected<error> fail(
    errc code, std::string detail, retry_advice retry = retry_advice::never, bool in_doubt = false
) {
    return tl::unexpected<error>(error{code, retry, in_doubt, std::move(detail)});
}

/// The stable lower-case name of a code, as logs and JSON show it.
[[nodiscard]] std::string_view name_of(errc code) noexcept;

}  // namespace millrace
