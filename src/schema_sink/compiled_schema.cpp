#include "compiled_schema.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace millrace::schema {

namespace {

result<compiled_schema> compile_avro(const registry::resolved_schema& which) {
    std::vector<avro_reference> references;
    references.reserve(which.references.size());
    for (const auto& other : which.references)
        references.push_back({other->subject, other->schema->text});
    auto plan = parse_avro_schema(which.self->schema->text, references);
    if (!plan) return tl::unexpected(std::move(plan.error()));
    return compiled_schema{std::move(*plan)};
}

result<compiled_schema> compile_json(const registry::resolved_schema& which) {
    std::vector<json_reference> references;
    const auto add = [&](const registry::registered_schema& of) {
        for (const auto& reference : of.schema->references) {
            const auto* const other = which.find(reference);
            const auto known = std::any_of(references.begin(), references.end(), [&](const auto& r) {
                return r.name == reference.name;
            });
            if (other != nullptr && !known) references.push_back({reference.name, other->schema->text});
        }
    };
    add(*which.self);
    for (const auto& other : which.references)
        add(*other);
    auto plan = parse_json_schema(which.self->schema->text, references);
    if (!plan) return tl::unexpected(std::move(plan.error()));
    return compiled_schema{std::move(*plan)};
}

}  // namespace

result<compiled_pointer> compiled_schemas::get(const registry::resolved_schema& which) {
    if (auto known = by_id_[which.self->id].lock()) return known;
    const bool is_json = which.self->schema->type == registry::schema_type::json;
    auto made = is_json ? compile_json(which) : compile_avro(which);
    if (!made) return tl::unexpected(std::move(made.error()));
    const auto size = made->bytes();
    const compiled_pointer kept(
        new compiled_schema(std::move(*made)),
        [sum = bytes_, size](const compiled_schema* gone) {
            *sum -= size;
            delete gone;
        }
    );
    *bytes_ += size;
    by_id_[which.self->id] = kept;
    if (by_id_.size() > tidy_at_) {
        std::erase_if(by_id_, [](const auto& entry) { return entry.second.expired(); });
        tidy_at_ = 2 * by_id_.size() + 64;
    }
    return kept;
}

}  // namespace millrace::schema
