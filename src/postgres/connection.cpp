#include "connection.hpp"

#include "assert.hpp"
#include "connection_impl.hpp"
#include "postgres_error.hpp"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>
#include <poll.h>

namespace millrace::postgres {

limits limits_below(nanoseconds lease) noexcept {
    const auto share = [lease](int fifths) {
        return std::max(milliseconds{1}, std::chrono::floor<milliseconds>(lease * fifths / 5));
    };
    limits made;
    made.statement = std::min(made.statement, share(2));
    made.lock = std::min(made.lock, share(1));
    made.idle_in_transaction = std::min(made.idle_in_transaction, share(2));
    made.reply = std::min(made.reply, share(4));
    return made;
}

namespace {

statement control(std::string sql, effect what, std::string doing) {
    return {std::move(sql), what, std::move(doing), planning::once};
}

/// As one SELECT: SET LOCAL is no part of an implicit transaction, `set_config` is. Nothing here is worth
/// compiling: a DELETE of 1,000 ranges is thought to be dear beside a large table, and compiling it took 370
/// of its 440 ms. Nor is it worth helpers: two processes were started for each read of a large backlog, which
/// cost as much as all the reading, on processors that are the application's. A plan that is kept is never
/// made for the values of one call: weighing the two costs what keeping it saves. First comes the process
/// that serves, by which a pooler is told from the server.
std::string sql_of(const limits& l, planning plan, bool for_session) {
    std::string sql = "SELECT pg_backend_pid()";
    const auto put = [&](std::string_view name, std::string_view value) {
        sql += fmt::format(", set_config('{}', {}, {})", name, value, !for_session);
    };
    // Within a transaction nothing else was set; a session may have other values of ours.
    const auto put_or_reset = [&](std::string_view name, bool set, std::string_view value) {
        if (set || for_session) put(name, set ? value : "NULL");
    };
    put("statement_timeout", fmt::format("'{}'", l.statement.count()));
    put("lock_timeout", fmt::format("'{}'", l.lock.count()));
    put("idle_in_transaction_session_timeout", fmt::format("'{}'", l.idle_in_transaction.count()));
    put("jit", "'off'");
    put("max_parallel_workers_per_gather", "'0'");
    if (for_session) put("default_transaction_isolation", "'read committed'");
    for (const auto* way : {"enable_seqscan", "enable_bitmapscan", "enable_material"})
        put_or_reset(way, l.by_index, "'off'");
    put_or_reset("plan_cache_mode", plan == planning::once, "'force_generic_plan'");
    put_or_reset("synchronous_commit", l.commit == durability::relaxed, "'off'");
    if (l.commit == durability::durable) {
        put("synchronous_commit", "coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'local')");
    }
    return sql;
}

const statement& begin_statement(isolation level) {
    static const auto committed =
        control("BEGIN ISOLATION LEVEL READ COMMITTED", effect::reads, "begin a transaction in");
    static const auto repeatable =
        control("BEGIN ISOLATION LEVEL REPEATABLE READ", effect::reads, "begin a transaction in");
    return level == isolation::repeatable_read ? repeatable : committed;
}

const statement& commit_statement() {
    static const auto commit = control("COMMIT", effect::writes, "commit in");
    return commit;
}

statement limits_for(const limits& given, planning plan, bool for_session) {
    return control(sql_of(given, plan, for_session), effect::reads, "set limits in");
}

}  // namespace

connection::impl::limit_statements::limit_statements(const limits& of)
    : local(limits_for(of, planning::each_time, false)),
      local_once(limits_for(of, planning::once, false)),
      session(limits_for(of, planning::each_time, true)),
      session_once(limits_for(of, planning::once, true)) {}

connection::impl::impl(handle made, std::string server_name, const stop_signal& stop_by, limits given)
    : db(std::move(made)),
      name(std::move(server_name)),
      stop(&stop_by),
      present(given),
      limits_to_set(given) {}

void connection::impl::set_limits(limits given) {
    if (given == present) return;
    present = given;
    limits_to_set = limit_statements(given);
}

const statement& connection::impl::limits_before(std::span<const statement> batch) const {
    const bool once =
        std::all_of(batch.begin(), batch.end(), [](const auto& one) { return one.keeps_plan(); });
    const auto& to_set = limits_to_set;
    if (!kept.may_keep()) return once ? to_set.local_once : to_set.local;
    return once ? to_set.session_once : to_set.session;
}

result<std::vector<rows>> connection::impl::run_group(
    std::span<const statement> batch, const statement* commit
) {
    group all;
    const bool for_session = kept.may_keep();
    const auto& to_set = limits_before(batch);
    const bool are_set = in_session == to_set.sql();
    // A session that is as it should be makes one transaction of a group also without BEGIN.
    const bool needs_no_begin = are_set && level == isolation::read_committed && commit != nullptr;
    const bool begins = stage == stage::wanted && !needs_no_begin;
    all.of = stage == stage::open ? group::part::further : begins ? group::part::first : group::part::whole;
    if (begins) all.statements.push_back(&begin_statement(level));
    if (stage != stage::open && !are_set) all.statements.push_back(&to_set);
    const auto hidden = static_cast<std::ptrdiff_t>(all.statements.size());
    for (const auto& one : batch) {
        all.statements.push_back(&one);
        wrote = wrote || one.writes();
    }
    const bool ends_here = stage == stage::none || commit != nullptr;
    if (commit != nullptr && all.of != group::part::whole) all.statements.push_back(commit);
    all.writes = ends_here && wrote;
    if (begins) stage = stage::open;
    if (stage == stage::none) wrote = false;

    auto outcome = exchange(all);
    if (outcome) {
        if (hidden > 0 && for_session && kept.may_keep()) in_session = to_set.sql();
        outcome->erase(outcome->begin(), outcome->begin() + hidden);
    } else {
        in_session.clear();  // what was set in a transaction that failed is undone
    }
    return outcome;
}

connection::connection(std::unique_ptr<impl> made) : impl_(std::move(made)) {}
connection::connection(connection&&) noexcept = default;
connection& connection::operator=(connection&&) noexcept = default;
connection::~connection() = default;

result<rows> connection::run(const statement& what) {
    auto all = run_together({&what, 1});
    if (!all) return tl::unexpected(std::move(all.error()));
    return std::move(all->front());
}

result<std::vector<rows>> connection::run_together(std::span<const statement> batch) {
    return impl_->run_group(batch, nullptr);
}

transaction connection::begin(isolation level) {
    MILLRACE_ASSERT(impl_->stage == impl::stage::none);
    impl_->stage = impl::stage::wanted;
    impl_->level = level;
    impl_->wrote = false;
    return transaction(*this);
}

void connection::set_limits(limits given) {
    impl_->set_limits(given);
}

const limits& connection::present_limits() const noexcept {
    return impl_->present;
}

bool connection::usable() const noexcept {
    return impl_->db != nullptr && PQstatus(impl_->db.get()) == CONNECTION_OK;
}

void connection::close() noexcept {
    impl_->db.reset();
}

bool connection::still_open() {
    while (usable()) {
        pollfd readable{PQsocket(impl_->db.get()), POLLIN, 0};
        if (poll(&readable, 1, 0) <= 0) return true;
        if (PQconsumeInput(impl_->db.get()) == 0) break;
    }
    return false;
}

const std::string& connection::last_refusal() const noexcept {
    return impl_->last_refusal;
}

std::uint64_t connection::number() const noexcept {
    return impl_->number;
}

void connection::set_number(std::uint64_t number) noexcept {
    impl_->number = number;
}

const std::string& connection::name() const noexcept {
    return impl_->name;
}

transaction::~transaction() {
    if (connection_ == nullptr) return;
    auto& impl = *connection_->impl_;
    const bool sent =
        std::exchange(impl.stage, connection::impl::stage::none) == connection::impl::stage::open;
    if (!sent || !connection_->usable()) return;
    // What it has set is undone, too. A connection on which even this fails is closed, which rolls back as
    // well.
    impl.in_session.clear();
    if (!impl.roll_back()) impl.db.reset();
}

result<void> transaction::commit() {
    return commit_with({}).map([](const std::vector<rows>&) {});
}

result<std::vector<rows>> transaction::commit_with(std::span<const statement> last) {
    auto& impl = *connection_->impl_;
    if (impl.stage == connection::impl::stage::wanted && last.empty()) {
        std::exchange(connection_, nullptr)->impl_->stage = connection::impl::stage::none;
        return {};
    }
    auto outcome = impl.run_group(last, &commit_statement());
    if (!outcome) return outcome;
    bool committed = true;
    if (impl.stage == connection::impl::stage::open) {
        committed = outcome->back().tag() == "COMMIT";
        outcome->pop_back();
    }
    if (!committed) {
        return fail(
            errc::conflict,
            fmt::format(
                "cannot commit in {}: a statement of the transaction had failed; it is tried again", impl.name
            ),
            retry_advice::now
        );
    }
    impl.stage = connection::impl::stage::none;
    connection_ = nullptr;
    return outcome;
}

}  // namespace millrace::postgres
