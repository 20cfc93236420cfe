#include "paced_log.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace millrace {

namespace {

constexpr std::uint32_t lines_at_once = 5;
constexpr nanoseconds line_every = std::chrono::seconds{5};
constexpr nanoseconds repeated_every = std::chrono::minutes{1};

std::size_t hash_of(std::initializer_list<log_field> fields) {
    std::size_t sum = 0;
    for (const auto& field : fields)
        sum = sum * 31 + std::hash<std::string_view>{}(field.value);
    return sum;
}

}  // namespace

void paced_log::refill(kind& of) const {
    const auto gained = (loop_.now() - of.refilled) / line_every;
    if (gained <= 0) return;
    of.left = static_cast<std::uint32_t>(std::min<std::int64_t>(lines_at_once, of.left + gained));
    of.refilled += gained * line_every;
}

paced_log::kind& paced_log::kind_of(log_level level, std::string_view event) {
    auto found = kinds_.find(event);
    if (found == kinds_.end())
        found = kinds_.emplace(std::string(event), kind{lines_at_once, loop_.now(), level}).first;
    return found->second;
}

void paced_log::write(
    log_level level, std::string_view event, std::initializer_list<log_field> fields, std::string_view detail
) {
    if (!enabled(level)) return;
    auto& of = kind_of(level, event);
    refill(of);
    of.level = level;
    if (of.left > 0 && of.more == 0) {
        --of.left;
        loop_.log().write(level, event, fields);
        return;
    }
    ++of.more;
    of.detail = detail;
    arm();
}

void paced_log::write_change(
    log_level level, std::string_view event, std::initializer_list<log_field> fields, std::string_view detail
) {
    if (!enabled(level)) return;
    auto& of = kind_of(level, event);
    const auto hash = hash_of(fields);
    if (of.said == hash && loop_.now() - of.said_at < repeated_every) return;
    of.said = hash;
    of.said_at = loop_.now();
    write(level, event, fields, detail);
}

void paced_log::write_of(
    std::string_view cause,
    log_level level,
    std::string_view event,
    std::initializer_list<log_field> fields,
    std::string_view detail
) {
    if (!enabled(level)) return;
    const auto now = loop_.now();
    const auto told = tellers_.find(cause);
    if (told != tellers_.end() && told->second.event != event && now - told->second.at < repeated_every) {
        if (enabled(log_level::debug)) loop_.log().write(log_level::debug, event, fields);
        return;
    }
    tellers_.insert_or_assign(std::string(cause), teller{std::string(event), now});
    write_change(level, event, fields, detail);
}

void paced_log::over(std::string_view cause) {
    const auto found = tellers_.find(cause);
    if (found == tellers_.end()) return;
    ended(found->second.event);
    tellers_.erase(found);
}

void paced_log::ended(std::string_view event) {
    const auto found = kinds_.find(event);
    if (found != kinds_.end()) found->second.said.reset();
}

void paced_log::arm() {
    if (std::exchange(armed_, true)) return;
    flush_.set(loop_.now() + line_every, [this] {
        armed_ = false;
        flush(false);
    });
}

void paced_log::flush(bool all) {
    bool waiting = false;
    for (auto& [event, of] : kinds_) {
        refill(of);
        if (of.more == 0) continue;
        if (all || of.left > 0) {
            say_more(event, of);
        } else {
            waiting = true;
        }
    }
    if (waiting) arm();
}

void paced_log::say_more(const std::string& event, kind& of) {
    of.left -= std::min(of.left, 1U);
    loop_.log().write(
        of.level,
        event,
        {{"more", std::to_string(std::exchange(of.more, 0))}, {"detail", std::move(of.detail)}}
    );
}

}  // namespace millrace
