#include "group_import.hpp"

#include "group/group_start.hpp"
#include "no_sessions.hpp"

#include <optional>
#include <set>
#include <utility>
#include <variant>

#include <fmt/format.h>

namespace millrace {

struct group_import::impl {
    impl(
        host& l,
        shard_lister& from,
        lease_store& s,
        std::vector<imported_shard> given,
        bool forced,
        process_identity self,
        lapse_observer::process_gone gone,
        nanoseconds wait
    )
        : loop(l),
          stream(from),
          store(s),
          lines(std::move(given)),
          force(forced),
          still(l, wait),
          sessions(l, s, false, "", std::move(self), std::move(gone), still) {}

    void list_stream();
    void read_group();
    void list_rows();
    void make_plan(const std::vector<shard_row>& rows);
    void write_next();
    void look_again();
    void again(const error& why, void (impl::*what)());
    void finish(result<import_report> outcome);

    host& loop;
    shard_lister& stream;
    lease_store& store;
    std::vector<imported_shard> lines;
    bool force;
    patience still;
    no_sessions sessions;
    lifetime alive;
    completion<import_report> done;

    stream_listing listing;
    std::optional<group_row> group;
    import_plan plan;
    std::size_t next{0};
    std::set<shard_id> sent;      // whose rows were written, now or at an earlier attempt
    std::set<shard_id> inferred;  // of these
};

void group_import::impl::finish(result<import_report> outcome) {
    if (auto tell = std::exchange(done, {})) tell(std::move(outcome));
}

void group_import::impl::again(const error& why, void (impl::*what)()) {
    if (!still.lasts(why)) return finish(tl::unexpected(why));
    loop.call_at(loop.now() + patience::pause, alive.guard([this, what] { (this->*what)(); }));
}

void group_import::impl::list_stream() {
    stream.list_shards(alive.guard([this](result<stream_listing> outcome) {
        if (!outcome) {
            if (outcome.error().retry == retry_advice::never) return finish(tl::unexpected(outcome.error()));
            return again(outcome.error(), &impl::list_stream);
        }
        listing = std::move(*outcome);
        read_group();
    }));
}

void group_import::impl::read_group() {
    store.read(std::monostate{}, alive.guard([this](result<std::optional<lease_row>> outcome) {
        if (!outcome) return again(outcome.error(), &impl::read_group);
        group.reset();
        if (*outcome) group = std::get<group_row>(**outcome);
        if (group) {
            if (auto known = check_format(*group); !known) return finish(tl::unexpected(known.error()));
        }
        list_rows();
    }));
}

void group_import::impl::list_rows() {
    store.list_shards(alive.guard([this](result<std::vector<shard_row>> rows) {
        if (!rows) return again(rows.error(), &impl::list_rows);
        if (auto why = unreadable_in(*rows)) return finish(tl::unexpected(std::move(*why)));
        make_plan(*rows);
    }));
}

void group_import::impl::make_plan(const std::vector<shard_row>& rows) {
    auto made =
        plan_import(lines, {listing, group, rows, loop.wall()}, force, [this] { return loop.random(); });
    if (!made) return finish(tl::unexpected(made.error()));
    plan = std::move(*made);
    next = 0;
    inferred.insert(plan.inferred.begin(), plan.inferred.end());
    write_next();
}

// A write that was refused, or is in doubt, is planned anew from the rows as they then stand.
void group_import::impl::write_next() {
    if (next == plan.writes.size()) return look_again();
    auto& [row, expected] = plan.writes[next];
    row.updated_at = loop.wall();
    sent.insert(row.shard);
    store.write(row, expected, alive.guard([this](const result<void>& outcome) {
        if (!outcome) return again(outcome.error(), &impl::list_rows);
        ++next;
        still.answered();
        write_next();
    }));
}

// A worker that began meanwhile may have read from elsewhere.
void group_import::impl::look_again() {
    store.list_workers(alive.guard([this](result<std::vector<worker_row>> rows) {
        if (!rows) return again(rows.error(), &impl::look_again);
        if (!rows->empty()) {
            return finish(fail(
                errc::conflict,
                fmt::format(
                    "worker \"{}\" began to work in this group during the import; stop all workers, and "
                    "import again",
                    rows->front().worker.value()
                )
            ));
        }
        import_report report;
        report.inferred.assign(inferred.begin(), inferred.end());
        report.written = sent.size() - inferred.size();
        report.kept = std::move(plan.kept);
        report.gone = std::move(plan.gone);
        report.same = lines.size() - report.written - report.kept.size() - report.gone.size();
        finish(std::move(report));
    }));
}

group_import::group_import(
    host& loop,
    shard_lister& stream,
    lease_store& store,
    std::vector<imported_shard> lines,
    bool force,
    process_identity self,
    lapse_observer::process_gone gone,
    nanoseconds wait
)
    : impl_(std::make_unique<impl>(
          loop, stream, store, std::move(lines), force, std::move(self), std::move(gone), wait
      )) {}

group_import::~group_import() = default;

void group_import::start(completion<import_report> done) {
    impl_->done = std::move(done);
    impl_->sessions.start([this](result<std::size_t> ended) {
        if (!ended) return impl_->finish(tl::unexpected(std::move(ended.error())));
        impl_->list_stream();
    });
}

}  // namespace millrace
