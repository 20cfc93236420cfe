#include "link.hpp"

#include <fmt/format.h>

namespace millrace::sim {

error link_error(fate what, std::string_view service, std::string_view request, bool writes) {
    if (what == fate::throttled) {
        return {
            errc::throttled,
            retry_advice::after_delay,
            false,
            fmt::format("{} asks for fewer requests; \"{}\" was not tried", service, request)};
    }
    if (what == fate::unavailable) {
        return {
            errc::unavailable,
            retry_advice::after_delay,
            false,
            fmt::format("{} is not reachable; \"{}\" was not tried", service, request)};
    }
    return {
        errc::unavailable,
        retry_advice::after_delay,
        writes,
        fmt::format("{} did not answer \"{}\" in time; read again before deciding", service, request)};
}

fate link::draw(std::string_view request, bool writes) {
    if (const auto found = forced_.find(request); found != forced_.end() && !found->second.empty()) {
        const auto what = found->second.front();
        found->second.pop_front();
        return what;
    }
    if (plan_.down) return fate::unavailable;
    auto dice = random_.below(100);
    const auto falls_on = [&dice](std::uint32_t percent) {
        if (dice < percent) return true;
        dice -= percent;
        return false;
    };
    if (falls_on(plan_.unavailable)) return fate::unavailable;
    if (falls_on(plan_.throttled)) return fate::throttled;
    if (falls_on(plan_.lost_request)) return fate::lost_request;
    if (falls_on(plan_.lost_reply)) return fate::lost_reply;
    if (writes && falls_on(plan_.late)) return fate::late;
    if (writes && falls_on(plan_.doubled)) return fate::doubled;
    return fate::normal;
}

nanoseconds link::latency() {
    return plan_.latency_min + upto(plan_.latency_max - plan_.latency_min);
}

nanoseconds link::upto(nanoseconds span) {
    return nanoseconds{
        static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(span.count()) + 1))};
}

}  // namespace millrace::sim
