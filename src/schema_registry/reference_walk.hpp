/// Goes from a schema to all that it needs, as far as the cache knows them. Part of `schema_cache`.
#pragma once

#include "schema_entries.hpp"

#include <optional>
#include <vector>

namespace millrace::registry {

/// Exactly one of the three is set.
struct walk_result {
    schema_pointer resolved;
    std::vector<cache_entry*> missing;  ///< To be asked for; then the walk begins anew.
    std::optional<registry_failure> failure;
};

/// `root` has an answer. It holds what was met from now on, and nothing else.
[[nodiscard]] walk_result walk_references(
    mono_time now, cache_entry& root, schema_entries& entries, const schema_cache_options& options
);

/// What becomes of a schema when one that it needs is refused.
[[nodiscard]] registry_failure because_of(const registry_failure& refused, const cache_entry& root);

/// For people: `the latest version of the subject "a"`.
[[nodiscard]] std::string describe(const cache_entry& which);

/// All entries of the cache are waited for.
[[nodiscard]] registry_failure no_room(const schema_cache_options& options);

}  // namespace millrace::registry
