/// Schemas for whoever encodes: known ones at once, others from the registry, on the host.
///
/// Drives `schema_cache` with a registry and the host's clock. Belongs to the host's thread. Completions come
/// on the host, never inside a call; those of a source that is gone are dropped. Writes to the log, each once
/// for each spell of trouble: `schema_registry.trouble`, `schema_registry.stale`,
/// `schema_registry.recovered`.
#pragma once

#include "port/host.hpp"
#include "registry_client.hpp"
#include "schema_cache.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace millrace::registry {

class schema_source {
public:
    using completion = std::function<void(schema_outcome)>;

    /// `options` must be valid.
    schema_source(host& home, std::unique_ptr<schema_registry> from, schema_cache_options options);
    ~schema_source();
    schema_source(const schema_source&) = delete;
    schema_source& operator=(const schema_source&) = delete;

    /// Gives a schema of a file, which each subject is to have. Without `may_register` it is only looked up
    /// there, and one that is absent is refused as `no_such_subject` or `no_such_schema`; nothing else ever
    /// registers anything.
    [[nodiscard]] schema_choice given(schema_text schema, bool may_register);

    /// What is known now. Cheap enough for every row.
    [[nodiscard]] found_schema find(std::string_view subject, schema_choice choice);

    /// Tells of the schema, or of an answer that there is none; trouble with the registry is waited out,
    /// however long. Asking again after a refusal waits for its next attempt, so it needs no pause of its
    /// own.
    void want(std::string_view subject, schema_choice choice, completion done);

    /// Null while the registry answers.
    [[nodiscard]] const registry_failure* trouble() const noexcept { return cache_.trouble(); }
    [[nodiscard]] const schema_counters& counters() const noexcept { return cache_.counters(); }

private:
    struct given_text {
        std::shared_ptr<const schema_text> schema;
        bool may_register;
    };

    void settle();
    void carry_out(schema_cache::ask& what);
    void carry_out(schema_cache::tell& what);
    void carry_out(const schema_cache::trouble_began& what);
    void carry_out(const schema_cache::trouble_ended& what);
    void carry_out(const schema_cache::stale_used& what);
    [[nodiscard]] question question_for(const schema_cache::ask& what) const;
    void set_alarm();

    host& home_;
    schema_cache cache_;
    std::vector<given_text> texts_;
    std::unordered_map<schema_cache::waiter, completion> waiting_;
    schema_cache::waiter last_waiter_{0};
    std::optional<mono_time> alarm_at_;
    host::timer alarm_{0};
    lifetime alive_;
    std::unique_ptr<schema_registry> registry_;  // ends first: its last outcomes find the rest still there
};

}  // namespace millrace::registry
