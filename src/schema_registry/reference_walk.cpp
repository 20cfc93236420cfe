#include "reference_walk.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

namespace millrace::registry {

namespace {

registry_failure bad(const cache_entry& root, std::string_view why) {
    return {
        failure_kind::bad_references,
        {errc::invalid_argument,
         retry_advice::never,
         false,
         fmt::format("{} cannot be used: {}", describe(root), why)},
        milliseconds{0}};
}

class walk {
public:
    walk(mono_time now, cache_entry& root, schema_entries& entries, const schema_cache_options& options)
        : now_(now), root_(root), entries_(entries), options_(options) {}

    walk_result run() {
        entries_.release_all(root_);
        gather();
        if (!found_.failure && found_.missing.empty()) put_in_order();
        if (found_.failure) found_.missing.clear();
        return std::move(found_);
    }

private:
    struct met {
        bool open{false};       // on the way from the root to where the search is
        std::size_t height{0};  // of the longest chain that begins here; 0: not known yet
    };

    [[nodiscard]] const std::vector<schema_reference>& references_of(const cache_entry& of) const {
        return of.answer->schema->references;
    }

    // By breadth; what has no answer yet ends there.
    void gather() {
        std::vector<cache_entry*> level{&root_};
        for (std::size_t depth = 1; !level.empty() && !found_.failure; ++depth) {
            std::vector<cache_entry*> next;
            for (auto* const each : level) {
                for (const auto& reference : references_of(*each)) {
                    if (!meet(reference, depth, next)) return;
                }
            }
            level = std::move(next);
        }
    }

    /// False when that is the end of it.
    bool meet(const schema_reference& reference, std::size_t depth, std::vector<cache_entry*>& next) {
        const auto choice = schema_choice::version(reference.version);
        auto* child = entries_.find(reference.subject, choice);
        if (child == nullptr) child = entries_.make(reference.subject, choice);
        if (child == nullptr) return fails(no_room(options_));
        if (!met_.try_emplace(child).second) return true;
        entries_.hold(root_, *child);
        if (depth > options_.reference_depth_max) return fails(too_deep());
        if (met_.size() > options_.references_max) {
            return fails(
                bad(root_,
                    fmt::format(
                        "it needs more than {} other schemas; raise references_max", options_.references_max
                    ))
            );
        }
        if (!child->answer) {
            const bool refused = child->failed && !is_trouble(child->failed->kind) && now_ < child->try_at;
            if (refused) return fails(because_of(*child->failed, root_));
            found_.missing.push_back(child);
            return true;
        }
        bytes_ += child->answer->schema->text.size();
        if (bytes_ > options_.reference_bytes_max) {
            return fails(
                bad(root_,
                    fmt::format(
                        "the schemas that it needs are longer than {} bytes; raise reference_bytes_max",
                        options_.reference_bytes_max
                    ))
            );
        }
        next.push_back(child);
        return true;
    }

    bool fails(registry_failure why) {
        found_.failure = std::move(why);
        return false;
    }
    [[nodiscard]] registry_failure too_deep() const {
        return bad(
            root_,
            fmt::format(
                "it needs a chain of more than {} schemas; raise reference_depth_max",
                options_.reference_depth_max
            )
        );
    }

    void put_in_order() {
        auto resolved = std::make_shared<resolved_schema>();
        resolved->self = root_.answer;
        if (!close(root_, 0, *resolved)) return;
        found_.resolved = std::move(resolved);
    }

    /// Appends what `of` needs, then `of`. The chain from the root to it is `depth` long.
    bool close(cache_entry& of, std::size_t depth, resolved_schema& into) {
        if (depth > options_.reference_depth_max) return fails(too_deep());
        auto& here = met_[&of];  // stays where it is, whatever is added
        here.open = true;
        std::size_t height = 1;
        for (const auto& reference : references_of(of)) {
            auto& child = *entries_.find(reference.subject, schema_choice::version(reference.version));
            auto& there = met_[&child];
            if (there.open) {
                return fails(
                    bad(root_,
                        fmt::format(
                            "{} needs itself by way of its references; correct the schemas", describe(child)
                        ))
                );
            }
            if (there.height == 0 && !close(child, depth + 1, into)) return false;
            if (depth + there.height > options_.reference_depth_max) return fails(too_deep());
            height = std::max(height, there.height + 1);
        }
        here.open = false;
        here.height = height;
        if (&of != &root_) into.references.push_back(of.answer);
        return true;
    }

    mono_time now_;
    cache_entry& root_;
    schema_entries& entries_;
    const schema_cache_options& options_;
    std::unordered_map<cache_entry*, met> met_;  // without the root, unless its own fixed version is met
    std::size_t bytes_{0};
    walk_result found_;
};

}  // namespace

walk_result walk_references(
    mono_time now, cache_entry& root, schema_entries& entries, const schema_cache_options& options
) {
    return walk(now, root, entries, options).run();
}

registry_failure because_of(const registry_failure& refused, const cache_entry& root) {
    auto failure = refused;
    failure.why.detail = fmt::format(
        "{} cannot be used, since it needs what is refused: {}", describe(root), refused.why.detail
    );
    return failure;
}

std::string describe(const cache_entry& which) {
    switch (which.choice.how) {
        case schema_choice::by::latest:
            return describe(ask_version{which.subject, std::nullopt});
        case schema_choice::by::version:
            return describe(ask_version{which.subject, static_cast<std::int32_t>(which.choice.number)});
        case schema_choice::by::id:
            return describe(ask_id{which.choice.number});
        case schema_choice::by::text:
            break;
    }
    return describe(ask_text{which.subject, nullptr});
}

registry_failure no_room(const schema_cache_options& options) {
    return {
        failure_kind::cache_full,
        {errc::throttled,
         retry_advice::after_delay,
         false,
         fmt::format(
             "each of the {} schemas that the cache may hold is being waited for; raise entries_max, or see "
             "why the "
             "registry does not answer",
             options.entries_max
         )},
        milliseconds{0}};
}

}  // namespace millrace::registry
