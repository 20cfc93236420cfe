#include "logging.hpp"

#include "json_text.hpp"
#include "line_writer.hpp"
#include "live_line.hpp"
#include "record/bytes_text.hpp"

#include <mutex>
#include <string>

#include <spdlog/pattern_formatter.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

namespace millrace::app {

namespace {

constexpr std::size_t field_bytes_max = 1'500;  // a registry's own words take up to 1,000

spdlog::level::level_enum to_spdlog(log_level level) {
    switch (level) {
        case log_level::trace:
            return spdlog::level::trace;
        case log_level::debug:
            return spdlog::level::debug;
        case log_level::info:
            return spdlog::level::info;
        case log_level::warning:
            return spdlog::level::warn;
        case log_level::error:
            return spdlog::level::err;
    }
    return spdlog::level::off;
}

spdlog::level::level_enum named_level(std::string_view name) {
    if (name == "trace") return spdlog::level::trace;
    if (name == "debug") return spdlog::level::debug;
    if (name == "info") return spdlog::level::info;
    if (name == "warning") return spdlog::level::warn;
    if (name == "error") return spdlog::level::err;
    return spdlog::level::off;
}

/// Quotes a value that holds anything but what needs no quotes, so that a line always splits again.
void append_value(std::string& out, std::string_view value) {
    const bool bare = !value.empty() && value.find_first_of(" \t\r\n\"=\\") == std::string_view::npos &&
                      is_utf8(value) && value.find('\x7f') == std::string_view::npos;
    if (bare) {
        for (const char c : value) {
            if (static_cast<unsigned char>(c) < 0x20) {
                out += json_string(value);
                return;
            }
        }
        out += value;
        return;
    }
    out += json_string(value);
}

std::string cut(std::string_view value) {
    if (value.size() <= field_bytes_max) return std::string{value};
    std::size_t end = field_bytes_max;
    while (end > 0 && (static_cast<unsigned char>(value[end]) & 0xC0U) == 0x80U)
        --end;
    return std::string{value.substr(0, end)} + "...";
}

class spdlog_log final : public program_log {
public:
    spdlog_log(spdlog::level::level_enum level, bool json)
        : level_(level),
          json_(json),
          formatter_(
              json ? R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l",%v})" : "%Y-%m-%dT%H:%M:%S.%eZ %l %v",
              spdlog::pattern_time_type::utc
          ),
          writer_(
              STDERR_FILENO,
              {.of_dropped =
                   [this](std::uint64_t lines) {
                       return text_of(log_level::warning, "log.dropped", {{"lines", std::to_string(lines)}});
                   },
               .before_write = &live_line::clear_for_log}
          ) {}

    [[nodiscard]] bool enabled(log_level level) const noexcept override { return to_spdlog(level) >= level_; }

    void write(log_level level, std::string_view event, std::initializer_list<log_field> fields) override {
        if (enabled(level)) writer_.add(text_of(level, event, fields));
    }

    void flush() override { writer_.flush(); }

    [[nodiscard]] std::uint64_t dropped() const override { return writer_.dropped(); }

private:
    std::string text_of(log_level level, std::string_view event, std::initializer_list<log_field> fields) {
        std::string line;
        if (json_) {
            line = R"("event":)" + json_string(event);
            for (const log_field& f : fields) {
                if (!f.value.empty()) line += ',' + json_string(f.name) + ':' + json_string(cut(f.value));
            }
        } else {
            line = event;
            for (const log_field& f : fields) {
                if (f.value.empty()) continue;
                line += ' ';
                line += f.name;
                line += '=';
                append_value(line, cut(f.value));
            }
        }
        const spdlog::details::log_msg message("millrace", to_spdlog(level), line);
        spdlog::memory_buf_t out;
        const std::lock_guard lock(turn_);
        formatter_.format(message, out);
        return {out.data(), out.size()};
    }

    const spdlog::level::level_enum level_;
    const bool json_;
    std::mutex turn_;  // the formatter remembers the second it wrote last
    spdlog::pattern_formatter formatter_;
    line_writer writer_;
};

}  // namespace

std::unique_ptr<program_log> make_log(std::string_view level, std::string_view format) {
    return std::make_unique<spdlog_log>(named_level(level), format == "json");
}

}  // namespace millrace::app
