#include "connection.hpp"

#include "assert.hpp"
#include "connection_impl.hpp"
#include "postgres_error.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <poll.h>

namespace millrace::postgres {

namespace {

statement control(std::string sql, effect what, std::string doing) {
    return {std::move(sql), what, std::move(doing), planning::once};
}

/// As one SELECT: SET LOCAL is no part of an implicit transaction, `set_config` is. Nothing here is worth
/// compiling: a DELETE of 1,000 ranges is thought to be dear beside a large table, and compiling it took 370
/// of its 440 ms. With the process that serves, by which a pooler is told from the server. A plan that is
/// kept is never made for the values of one call: weighing the two costs what keeping it saves.
std::string sql_of(const limits& l, planning plan) {
    auto sql = fmt::format(
        "SELECT pg_backend_pid(), set_config('statement_timeout', '{}', true), set_config('lock_timeout', "
        "'{}', true), "
        "set_config('idle_in_transaction_session_timeout', '{}', true), set_config('jit', 'off', true)",
        l.statement.count(),
        l.lock.count(),
        l.idle_in_transaction.count()
    );
    if (l.by_index) {
        for (const auto* way : {"enable_seqscan", "enable_bitmapscan", "enable_material"})
            sql += fmt::format(", set_config('{}', 'off', true)", way);
    }
    if (plan == planning::once) sql += ", set_config('plan_cache_mode', 'force_generic_plan', true)";
    if (l.commit == durability::relaxed) sql += ", set_config('synchronous_commit', 'off', true)";
    if (l.commit == durability::durable) {
        sql +=
            ", set_config('synchronous_commit', coalesce(nullif(current_setting('synchronous_commit'), "
            "'off'), "
            "'local'), true)";
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

statement limits_for(const limits& given, planning plan) {
    return control(sql_of(given, plan), effect::reads, "set limits in");
}

}  // namespace

connection::impl::impl(handle made, std::string server_name, const stop_signal& stop_by, limits given)
    : db(std::move(made)),
      name(std::move(server_name)),
      stop(&stop_by),
      present(given),
      limits_statement(limits_for(given, planning::each_time)),
      limits_once_statement(limits_for(given, planning::once)) {}

void connection::impl::set_limits(limits given) {
    if (given == present) return;
    present = given;
    limits_statement = limits_for(given, planning::each_time);
    limits_once_statement = limits_for(given, planning::once);
}

result<std::vector<rows>> connection::impl::run_group(
    std::span<const statement> batch, const statement* commit
) {
    group all;
    all.of = stage == stage::none     ? group::part::whole
             : stage == stage::wanted ? group::part::first
                                      : group::part::further;
    if (stage == stage::wanted) all.statements.push_back(&begin_statement(level));
    if (stage != stage::open) {
        const bool once =
            std::all_of(batch.begin(), batch.end(), [](const auto& s) { return s.keeps_plan(); });
        all.statements.push_back(once ? &limits_once_statement : &limits_statement);
    }
    const auto hidden = static_cast<std::ptrdiff_t>(all.statements.size());
    for (const auto& one : batch) {
        all.statements.push_back(&one);
        wrote = wrote || one.writes();
    }
    if (commit != nullptr) all.statements.push_back(commit);
    const bool ends_here = stage == stage::none || commit != nullptr;
    all.writes = ends_here && wrote;
    if (stage == stage::wanted) stage = stage::open;
    if (stage == stage::none) wrote = false;

    auto outcome = exchange(all);
    if (outcome) outcome->erase(outcome->begin(), outcome->begin() + hidden);
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
    // A connection on which even this fails is closed, which rolls back as well.
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
    const bool committed = outcome->back().tag() == "COMMIT";
    outcome->pop_back();
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
