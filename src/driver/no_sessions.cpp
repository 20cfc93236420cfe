#include "no_sessions.hpp"

#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace millrace {

namespace {

std::string name_of(const worker_row& row) {
    return fmt::format(
        "worker \"{}\" (process {} on host \"{}\")", row.worker.value(), row.process.pid, row.process.host
    );
}

/// Who is waited for, and for how long at most.
std::string waiting_for(const worker_row& row) {
    return fmt::format(
        "{} is registered; its session is over unless it renews it within {:.1f} s",
        name_of(row),
        std::chrono::duration<double>(row.lease).count()
    );
}

}  // namespace

struct no_sessions::impl {
    impl(
        host& l,
        lease_store& s,
        bool f,
        std::string a,
        process_identity self,
        lapse_observer::process_gone gone,
        patience& p
    )
        : loop(l),
          store(s),
          force(f),
          advice(std::move(a)),
          lapse(std::move(self), std::move(gone)),
          still(p) {}

    void look();
    void listed(const std::vector<worker_row>& rows);
    void end(std::vector<worker_row> over);
    void finish(result<std::size_t> outcome);

    host& loop;
    lease_store& store;
    bool force;
    std::string advice;
    lapse_observer lapse;
    patience& still;
    lifetime alive;
    completion<std::size_t> done;

    std::map<incarnation, version> first_seen;
    mono_time asked_at{};
    bool unlisted{false};  // the latest look failed
    bool missed{false};    // a session could not be ended at the first try
    std::size_t ended{0};
};

void no_sessions::impl::finish(result<std::size_t> outcome) {
    if (auto tell = std::exchange(done, {})) tell(std::move(outcome));
}

void no_sessions::impl::look() {
    asked_at = loop.now();
    store.list_workers(alive.guard([this](result<std::vector<worker_row>> outcome) {
        if (outcome && std::exchange(unlisted, false)) still.answered();
        if (outcome) return listed(*outcome);
        unlisted = true;
        if (!still.lasts(outcome.error())) return finish(tl::unexpected(outcome.error()));
        loop.call_at(loop.now() + patience::pause, alive.guard([this] { look(); }));
    }));
}

void no_sessions::impl::listed(const std::vector<worker_row>& rows) {
    if (auto why = unreadable_in(rows)) return finish(tl::unexpected(std::move(*why)));
    if (rows.empty()) return finish(ended);
    if (force) return end(rows);
    const auto over = lapse.observe(asked_at, loop.now(), rows);
    for (const auto& row : rows) {
        const auto [first, is_new] = first_seen.emplace(row.incarnation, row.counter);
        if (is_new || first->second == row.counter) continue;
        return finish(fail(
            errc::conflict,
            fmt::format("{} is at work in this group; stop all workers first{}", name_of(row), advice)
        ));
    }
    if (!over.empty()) return end(over);
    still.say(waiting_for(rows.front()));
    loop.call_at(loop.now() + patience::pause, alive.guard([this] { look(); }));
}

// One after the other, then another look: somebody may have renewed or registered meanwhile.
void no_sessions::impl::end(std::vector<worker_row> over) {
    // Workers that live register anew at once; the raised epochs stop them.
    if (over.empty()) return force && !std::exchange(missed, false) ? finish(ended) : look();
    const auto row = over.back();
    over.pop_back();
    store.remove(
        row.incarnation, row.counter, alive.guard([this, over = std::move(over)](result<void> outcome) {
            if (outcome) {
                ++ended;
                still.answered();
            } else {
                missed = true;
                if (!still.lasts(outcome.error())) return finish(tl::unexpected(outcome.error()));
            }
            end(over);
        })
    );
}

no_sessions::no_sessions(
    host& loop,
    lease_store& store,
    bool force,
    std::string advice,
    process_identity self,
    lapse_observer::process_gone gone,
    patience& still
)
    : impl_(std::make_unique<impl>(
          loop, store, force, std::move(advice), std::move(self), std::move(gone), still
      )) {}

no_sessions::~no_sessions() = default;

void no_sessions::start(completion<std::size_t> done) {
    impl_->done = std::move(done);
    impl_->look();
}

}  // namespace millrace
