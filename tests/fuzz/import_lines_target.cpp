#include "import_lines.hpp"
#include "targets.hpp"

#include <string>

namespace millrace::fuzz {

void import_lines(std::string_view text) {
    const auto read = app::parse_import(text);
    if (!read) {
        require(read.error().detail.starts_with("line "), "a refusal names its line");
        return;
    }
    std::size_t last = 0;
    for (const auto& line : *read) {
        require(line.line > last, "lines are in order");
        last = line.line;
        require(!line.shard.value().empty(), "a line has a shard");
        require(line.reached || line.finished, "a line says where the shard stands");
    }
}

}  // namespace millrace::fuzz
