#include "lease_row_reader.hpp"

#include <boost/json.hpp>

namespace millrace::lease_tables {

std::optional<std::vector<shard_id>> parents_from_json(std::string_view json) {
    std::vector<shard_id> parents;
    if (json == "[]") return parents;
    boost::json::error_code broken;
    boost::json::parse_options options;
    options.allow_invalid_utf8 = true;
    const auto parsed = boost::json::parse(json, broken, {}, options);
    if (broken || !parsed.is_array()) return std::nullopt;
    for (const auto& name : parsed.get_array()) {
        if (!name.is_string()) return std::nullopt;
        parents.emplace_back(std::string(name.get_string()));
    }
    return parents;
}

}  // namespace millrace::lease_tables
