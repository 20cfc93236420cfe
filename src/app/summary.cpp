#include "summary.hpp"

#include "units.hpp"

#include <fmt/format.h>

namespace millrace::app {

void work_time::note(std::uint64_t done, clock::time_point now) {
    if (done > done_) spent_ += now - last_;
    done_ = done;
    last_ = now;
}

double work_time::per_second() const {
    const double seconds = std::chrono::duration<double>(spent_).count();
    return seconds > 0 ? static_cast<double>(done_) / seconds : 0;
}

std::string pace_text(const work_time& work) {
    if (work.done() == 0) return {};
    return fmt::format(" in {}, {:.0f}/s", format_span(work.spent()), work.per_second());
}

std::string pace_json(const work_time& work) {
    const double seconds = std::chrono::duration<double>(work.spent()).count();
    return fmt::format(R"("seconds":{:.3f},"per_second":{:.1f})", seconds, work.per_second());
}

}  // namespace millrace::app
