/// Where the library says what it does. Events have fixed names and key=value fields; no payloads, no
/// secrets.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace millrace {

enum class log_level : std::uint8_t { trace, debug, info, warning, error };

/// One field of a log line. Values longer than a few hundred characters are cut by the sink.
struct log_field {
    std::string_view name;
    std::string value;
};

/// Receives log lines. Must be callable from any thread, not block for long, and not throw.
class log_sink {
public:
    virtual ~log_sink() = default;
    [[nodiscard]] virtual bool enabled(log_level level) const noexcept = 0;
    virtual void write(log_level level, std::string_view event, std::initializer_list<log_field> fields) = 0;
};

/// Drops everything.
[[nodiscard]] log_sink& null_log() noexcept;

}  // namespace millrace
