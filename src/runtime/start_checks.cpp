#include "start_checks.hpp"

namespace millrace {

bool keeps_from_starting(const error& why) {
    return why.retry == retry_advice::never || why.code == errc::permission_denied ||
           why.code == errc::corrupt || why.code == errc::invalid_config;
}

void add_fault(std::optional<error>& all, const error& next) {
    if (!all)
        all = next;
    else if (all->detail.find(next.detail) == std::string::npos)
        all->detail += "; also: " + next.detail;
}

void start_checks::run(host& loop, completion<void> done) {
    done_ = std::move(done);
    open_ = checks_.size() + 1;
    for (const auto& look : checks_)
        look(alive_.guard([this](const result<void>& outcome) { ended(outcome); }));
    loop.post(alive_.guard([this] { ended({}); }));
}

void start_checks::ended(const result<void>& outcome) {
    if (!outcome && keeps_from_starting(outcome.error())) add_fault(faults_, outcome.error());
    if (--open_ > 0) return;
    if (faults_)
        done_(tl::unexpected(*faults_));
    else
        done_({});
}

}  // namespace millrace
