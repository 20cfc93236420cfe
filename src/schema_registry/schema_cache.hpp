/// Which schemas are known, which are asked for, and what is done while the registry gives none.
///
/// Pure: the caller passes the time and the randomness in, carries out the actions, and hands in the answers.
/// No thread safety. What is known by its id, by a fixed version or by its text is kept for good; the latest
/// version of a subject for `latest_time`, and beyond that while the registry is in trouble. A subject is
/// asked for once, however many wait. What fails is asked again after a back-off with full jitter, as long as
/// anybody waits.
#pragma once

#include "registry_failure.hpp"
#include "registry_schema.hpp"
#include "schema_cache_options.hpp"

#include <millrace/error.hpp>
#include <millrace/time.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace millrace::registry {

/// Which schema of a subject.
struct schema_choice {
    enum class by : std::uint8_t { latest, version, id, text };

    by how{by::latest};
    std::uint32_t number{0};  ///< The version, the id, or what the text was given as.

    static constexpr schema_choice latest() { return {}; }
    static constexpr schema_choice version(std::int32_t n) {
        return {by::version, static_cast<std::uint32_t>(n)};
    }
    static constexpr schema_choice id(std::uint32_t n) { return {by::id, n}; }  ///< With an empty subject.
    static constexpr schema_choice text(std::uint32_t n) { return {by::text, n}; }

    auto operator<=>(const schema_choice&) const = default;
};

using schema_pointer = std::shared_ptr<const resolved_schema>;
using schema_outcome = tl::expected<schema_pointer, registry_failure>;

/// What `find` knows. The same pointer as before, for as long as the schema is the same.
struct found_schema {
    schema_pointer schema;  ///< Null: not yet, or refused.
    bool stale{false};      ///< Older than `latest_time`, because the registry is in trouble.

    /// Why there is none. An answer (`is_trouble` is false) holds until it is due to be asked again; with
    /// trouble, or null, it is "not yet". Valid until the next call of the cache.
    const registry_failure* why{nullptr};
};

class schema_cache {
public:
    using waiter = std::uint64_t;  ///< The caller's.
    using ticket = std::uint64_t;  ///< The cache's, of one request.

    struct ask {
        ticket which;
        std::string subject;
        schema_choice choice;
        std::shared_ptr<const schema_text> schema;  ///< Of a choice by text, as `want` gave it.
    };
    struct tell {
        waiter whom;
        schema_outcome outcome;
    };
    /// For the log; each once for each spell of trouble or of its kind.
    struct trouble_began {
        registry_failure failure;
    };
    struct trouble_ended {
        nanoseconds lasted;
    };
    struct stale_used {
        std::string subject;
        nanoseconds age;
    };
    using action = std::variant<ask, tell, trouble_began, trouble_ended, stale_used>;

    /// `options` must be valid.
    explicit schema_cache(schema_cache_options options);
    ~schema_cache();

    /// Cheap, without an allocation where the schema is known. May leave actions.
    [[nodiscard]] found_schema find(mono_time now, std::string_view subject, schema_choice choice);

    /// Tells `who` of the schema once it is known, or of the next answer that there is none. Trouble is
    /// waited out. `schema`, for a choice by text, is what the registry is told.
    void want(
        mono_time now,
        std::string_view subject,
        schema_choice choice,
        waiter who,
        std::shared_ptr<const schema_text> schema = nullptr
    );

    /// To an `ask`; once each.
    void answered(
        mono_time now,
        ticket which,
        tl::expected<registered_schema, registry_failure> outcome,
        std::uint64_t random
    );

    /// Call it when `wake_at` has come; more often does no harm.
    void tick(mono_time now);
    [[nodiscard]] std::optional<mono_time> wake_at() const;

    /// What is to be done since it was asked last; in order.
    [[nodiscard]] std::vector<action> take_actions();
    [[nodiscard]] bool has_actions() const noexcept;

    /// Null while the registry answers.
    [[nodiscard]] const registry_failure* trouble() const noexcept;
    [[nodiscard]] const schema_counters& counters() const noexcept;

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace millrace::registry
