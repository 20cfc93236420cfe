#include "worker_release.hpp"

#include "text/nearest.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace millrace {

namespace {

constexpr std::size_t names_shown = 10;

}  // namespace

struct worker_release::impl {
    impl(host& l, lease_store& s, worker_id w, nanoseconds wait)
        : loop(l), store(s), worker(std::move(w)), still(l, wait) {}

    void list_shards();
    void look();
    void listed(const std::vector<worker_row>& rows);
    void end(std::vector<worker_row> left);
    void again(const error& why, void (impl::*what)());
    void finish(result<worker_release_report> outcome);
    [[nodiscard]] error unknown(const std::vector<worker_row>& rows) const;

    host& loop;
    lease_store& store;
    worker_id worker;
    patience still;
    lifetime alive;
    completion<worker_release_report> done;

    std::vector<shard_row> shards;
    std::set<incarnation> victims;
    worker_release_report report;
};

void worker_release::impl::finish(result<worker_release_report> outcome) {
    if (auto tell = std::exchange(done, {})) tell(std::move(outcome));
}

void worker_release::impl::again(const error& why, void (impl::*what)()) {
    if (!still.lasts(why)) return finish(tl::unexpected(why));
    loop.call_at(loop.now() + patience::pause, alive.guard([this, what] { (this->*what)(); }));
}

void worker_release::impl::list_shards() {
    store.list_shards(alive.guard([this](result<std::vector<shard_row>> outcome) {
        if (!outcome) return again(outcome.error(), &impl::list_shards);
        shards = std::move(*outcome);
        look();
    }));
}

void worker_release::impl::look() {
    store.list_workers(alive.guard([this](const result<std::vector<worker_row>>& outcome) {
        if (!outcome) return again(outcome.error(), &impl::look);
        listed(*outcome);
    }));
}

void worker_release::impl::listed(const std::vector<worker_row>& rows) {
    if (victims.empty()) {
        for (const auto& row : rows)
            if (row.worker == worker) victims.insert(row.incarnation);
        if (victims.empty()) return finish(tl::unexpected(unknown(rows)));
        report.sessions = victims.size();
        for (const auto& shard : shards)
            if (victims.contains(shard.owner) && !shard.finished_at) report.shards.push_back(shard.shard);
    }
    std::vector<worker_row> left;
    std::copy_if(rows.begin(), rows.end(), std::back_inserter(left), [this](const worker_row& row) {
        return victims.contains(row.incarnation);
    });
    if (left.empty()) return finish(report);
    end(std::move(left));
}

// One after the other; what was refused is in the next listing, with a higher counter, or gone.
void worker_release::impl::end(std::vector<worker_row> left) {
    if (left.empty()) return look();
    const auto row = std::move(left.back());
    left.pop_back();
    store.remove(
        row.incarnation,
        row.counter,
        alive.guard([this, left = std::move(left)](const result<void>& outcome) {
            if (!outcome) return again(outcome.error(), &impl::look);
            end(left);
        })
    );
}

error worker_release::impl::unknown(const std::vector<worker_row>& rows) const {
    std::vector<std::string_view> names;
    names.reserve(rows.size());
    for (const auto& row : rows)
        names.push_back(row.worker.value());
    std::string hint = did_you_mean(worker.value(), names);
    if (names.empty()) {
        hint = "; no worker is registered";
    } else if (hint.empty() && names.size() <= names_shown) {
        hint = fmt::format("; registered are {}", fmt::join(names, ", "));
    }
    return {
        errc::not_found,
        retry_advice::never,
        false,
        fmt::format("no session of this group bears the worker id \"{}\"{}", worker.value(), hint)};
}

worker_release::worker_release(host& loop, lease_store& store, worker_id worker, nanoseconds wait)
    : impl_(std::make_unique<impl>(loop, store, std::move(worker), wait)) {}

worker_release::~worker_release() = default;

void worker_release::start(completion<worker_release_report> done) {
    impl_->done = std::move(done);
    impl_->list_shards();
}

}  // namespace millrace
