#include "relay/poison.hpp"

namespace millrace {

blame judge(const error& why, bool alone) noexcept {
    if (why.in_doubt) return blame::none;
    switch (why.code) {
        case errc::purged:
        case errc::cancelled:
        case errc::unavailable:
        case errc::throttled:
        case errc::not_owner:
            return blame::none;
        case errc::refused_record:
        case errc::refused_topic:
        case errc::invalid_argument:
            if (!alone) return blame::suspect;
            return why.retry == retry_advice::never ? blame::guilty : blame::mends;
        default:
            // Not the sink's word about a record. Where a retry is no use, the row is kept apart from the
            // others, so that it holds up its lane alone, but it is never given up for such a fault.
            return why.retry == retry_advice::never ? blame::suspect : blame::none;
    }
}

const error* failure_of(const result<publish_outcome>& outcome, row_id id) noexcept {
    if (!outcome) return &outcome.error();
    for (const auto& failure : outcome->failures) {
        if (failure.id == id) return &failure.why;
    }
    return nullptr;
}

std::string_view bury_reason(const error& why) noexcept {
    return name_of(why.code);
}

}  // namespace millrace
