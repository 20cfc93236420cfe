#include "targets.hpp"
#include "units.hpp"

namespace millrace::fuzz {

void units(std::string_view text) {
    if (const auto read = app::parse_duration(text)) {
        require(read->count() >= 0, "a duration is not negative");
        require(app::parse_duration(app::format_duration(*read)) == read, "a duration reads as it is shown");
        require(app::parse_seconds(text) == read || text == "0", "whatever has a unit is read alike");
        (void)app::format_span(*read);
    }
    if (const auto read = app::parse_seconds(text)) {
        require(app::parse_seconds(app::format_duration(*read)) == read, "seconds read as they are shown");
    }
    if (const auto read = app::parse_bytes(text)) {
        require(app::parse_bytes(app::format_bytes(*read)) == read, "a size reads as it is shown");
    }
    if (const auto read = app::parse_count(text)) {
        require(app::parse_count(std::to_string(*read)) == read, "a count reads as it is shown");
    }
    if (const auto read = app::parse_share(text)) require(*read >= 0 && *read <= 1, "a share is at most one");
    if (const auto read = app::parse_time(text)) {
        require(app::parse_time(app::format_time(*read)) == read, "a moment reads as it is shown");
    }
    const auto shown = app::in_quotes(text);
    require(shown.size() >= 2 && shown.size() <= 64 + 5, "text in a message is bounded");
    for (const char c : shown)
        require(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f, "text in a message holds no controls");
}

}  // namespace millrace::fuzz
