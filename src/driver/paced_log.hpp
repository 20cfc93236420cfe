/// A log for events that may come in floods: the first few of a name are written, then a count now and then.
///
/// Of each name five lines go through at once and one more every five seconds; that one also says how many
/// were left out (`more`). Names must be few and fixed. Lives on its host.
#pragma once

#include "alarm.hpp"
#include "port/host.hpp"

#include <millrace/log.hpp>
#include <millrace/time.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace millrace {

class paced_log {
public:
    explicit paced_log(host& loop) : loop_(loop), flush_(loop) {}
    ~paced_log() { flush(true); }
    paced_log(const paced_log&) = delete;
    paced_log& operator=(const paced_log&) = delete;

    /// The count comes with the `detail` of the latest line that was left out.
    void write(
        log_level level,
        std::string_view event,
        std::initializer_list<log_field> fields,
        std::string_view detail
    );

    /// The same for what goes on for long: a line that only repeats the one before is dropped, and written
    /// again after a minute if it still comes.
    void write_change(
        log_level level,
        std::string_view event,
        std::initializer_list<log_field> fields,
        std::string_view detail
    );

    /// As `write_change`, for lines of different names that have one cause: while the first name that told of
    /// it still comes, at least each minute, the others go at debug.
    void write_of(
        std::string_view cause,
        log_level level,
        std::string_view event,
        std::initializer_list<log_field> fields,
        std::string_view detail
    );

    /// The cause is over: whoever meets it again tells of it.
    void over(std::string_view cause);

    /// It is over: when it comes again, that is a change.
    void ended(std::string_view event);

    /// False when lines of this level need not be made.
    [[nodiscard]] bool enabled(log_level level) const { return loop_.log().enabled(level); }

private:
    struct kind {
        std::uint32_t left;  ///< Lines that may still go through.
        mono_time refilled;
        log_level level;
        std::uint64_t more{0};
        std::string detail{};               ///< Of the latest that was left out.
        std::optional<std::size_t> said{};  ///< A hash of the fields of the latest change.
        mono_time said_at{};
    };

    struct teller {
        std::string event;
        mono_time at;
    };

    [[nodiscard]] kind& kind_of(log_level level, std::string_view event);
    void refill(kind& of) const;
    void arm();
    void flush(bool all);
    void say_more(const std::string& event, kind& of);

    host& loop_;
    alarm flush_;
    bool armed_{false};
    std::map<std::string, kind, std::less<>> kinds_;
    std::map<std::string, teller, std::less<>> tellers_;  // by cause
};

}  // namespace millrace
