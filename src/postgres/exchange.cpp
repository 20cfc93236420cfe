#include "connection_impl.hpp"
#include "postgres_error.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

#include <fmt/format.h>
#include <poll.h>

namespace millrace::postgres {

namespace {

using result_handle = std::unique_ptr<PGresult, decltype(&PQclear)>;

std::string_view field(const PGresult* of, int which) {
    const char* text = PQresultErrorField(of, which);
    return text == nullptr ? std::string_view{} : text;
}

/// In pieces that fit libpq's arrays of C.
struct c_parameters {
    explicit c_parameters(const statement& of) {
        const auto count = of.parameters();
        types.reserve(count);
        values.reserve(count);
        lengths.reserve(count);
        for (std::size_t i = 0; i < count; ++i) {
            const auto one = of.at(i);
            constexpr std::size_t length_max = std::numeric_limits<int>::max();
            fits = fits && one.value.value_or("").size() <= length_max;
            types.push_back(static_cast<Oid>(one.type));
            values.push_back(one.value ? one.value->data() : nullptr);
            lengths.push_back(static_cast<int>(std::min(one.value.value_or("").size(), length_max)));
        }
        formats.assign(count, 1);
    }

    std::vector<Oid> types;
    std::vector<const char*> values;
    std::vector<int> lengths;
    std::vector<int> formats;
    bool fits{true};
};

const statement& rollback_statement() {
    static const statement rollback{"ROLLBACK", effect::reads, "roll back in"};
    return rollback;
}

const statement& clear_statement() {
    static const statement clear{"DEALLOCATE ALL", effect::reads, "drop old plans in"};
    return clear;
}

}  // namespace

/// Of one group, as it comes in.
struct connection::impl::reply {
    std::vector<rows> got;
    std::optional<error> refused;
    bool ended{false};  ///< The server is ready for the next group: what stands here is final.
};

std::vector<connection::impl::step> connection::impl::steps_of(const group& what, bool with_plans) {
    std::vector<step> steps;
    steps.reserve(what.statements.size() * 2 + 1);
    if (with_plans && what.of != group::part::further && kept.must_clear())
        steps.push_back({step::kind::clear, &clear_statement()});
    for (const auto* one : what.statements) {
        auto* plan = with_plans ? kept.of(*one) : nullptr;
        const auto prepared = [&](const step& earlier) { return earlier.plan == plan; };
        if (plan != nullptr && !plan->ready && std::none_of(steps.begin(), steps.end(), prepared))
            steps.push_back({step::kind::prepare, one, plan});
        steps.push_back({step::kind::run, one, plan});
    }
    return steps;
}

bool connection::impl::send(const std::vector<step>& steps) {
    for (const auto& one : steps) {
        const c_parameters bound(*one.what);
        if (!bound.fits) return false;
        const auto count = static_cast<int>(bound.types.size());
        const auto* const sql = one.what->sql().c_str();
        const auto* const values = bound.values.data();
        const auto* const lengths = bound.lengths.data();
        const auto* const formats = bound.formats.data();
        const int sent =
            one.does == step::kind::prepare
                ? PQsendPrepare(db.get(), one.plan->name.c_str(), sql, count, bound.types.data())
            : one.plan != nullptr
                ? PQsendQueryPrepared(db.get(), one.plan->name.c_str(), count, values, lengths, formats, 1)
                : PQsendQueryParams(db.get(), sql, count, bound.types.data(), values, lengths, formats, 1);
        if (sent == 0) return false;
    }
    return PQpipelineSync(db.get()) == 1;
}

/// Reads while it writes: a server that waits for us to read does not read either.
bool connection::impl::flush(steady::time_point until) {
    for (;;) {
        const int left = PQflush(db.get());
        if (left <= 0) return left == 0;
        gave_up = wait_for(PQsocket(db.get()), POLLIN | POLLOUT, until, *stop);
        if (gave_up != waited::ready || PQconsumeInput(db.get()) == 0) return false;
    }
}

/// Null at the end of a statement, and when nothing more will come.
PGresult* connection::impl::next(steady::time_point until) {
    while (PQisBusy(db.get()) != 0) {
        gave_up = wait_for(PQsocket(db.get()), POLLIN, until, *stop);
        if (gave_up != waited::ready) return nullptr;
        if (PQconsumeInput(db.get()) == 0) break;
    }
    return PQgetResult(db.get());
}

void connection::impl::note(const statement& what, const PGresult* refusal, reply& into) {
    if (into.refused) return;
    const auto state = field(refusal, PG_DIAG_SQLSTATE);
    if (state.empty()) return;  // libpq's own words on a lost connection
    last_refusal = state;
    into.refused = make_error(state, field(refusal, PG_DIAG_MESSAGE_PRIMARY), name, what.doing());
}

/// `owned`: a success.
void connection::impl::take(const step& of, PGresult* owned, reply& into) {
    rows got(owned);
    if (of.does == step::kind::prepare) of.plan->ready = true;
    if (of.does != step::kind::run) return;
    const bool is_limits = of.what == &limits_to_set.local || of.what == &limits_to_set.local_once;
    if (is_limits && !kept.decided()) kept.decide(got.integer(0, 0) == PQbackendPID(db.get()));
    into.got.push_back(std::move(got));
}

void connection::impl::read_step(const step& of, steady::time_point until, reply& into) {
    for (;;) {
        result_handle got(next(until), &PQclear);
        if (!got) return;
        switch (PQresultStatus(got.get())) {
            case PGRES_TUPLES_OK:
            case PGRES_COMMAND_OK:
            case PGRES_EMPTY_QUERY:
                take(of, got.release(), into);
                break;
            case PGRES_PIPELINE_ABORTED:
                break;
            default:
                note(*of.what, got.get(), into);
                if (PQstatus(db.get()) != CONNECTION_OK) return;
                break;
        }
    }
}

void connection::impl::read_group(const std::vector<step>& steps, steady::time_point until, reply& into) {
    const auto alive = [&] { return gave_up == waited::ready && PQstatus(db.get()) == CONNECTION_OK; };
    for (const auto& one : steps) {
        if (!alive()) return;
        read_step(one, until, into);
    }
    // Success of a statement is not yet that of its transaction, which is committed by the Sync.
    // There is nothing between two statements that ends with null, so a second one means a broken protocol.
    for (int nulls = 0; alive() && nulls < 2;) {
        const result_handle got(next(until), &PQclear);
        if (!got) {
            ++nulls;
            continue;
        }
        if (PQresultStatus(got.get()) == PGRES_PIPELINE_SYNC) {
            into.ended = true;
            return;
        }
        note(*steps.back().what, got.get(), into);
    }
}

result<std::vector<rows>> connection::impl::attempt(const group& what, bool with_plans) {
    const auto until = steady::now() + present.reply;
    gave_up = waited::ready;
    last_refusal.clear();
    const auto steps = steps_of(what, with_plans);
    const bool sent = db != nullptr && send(steps);
    reply of;
    if (sent && flush(until)) read_group(steps, until, of);
    if (of.ended && !of.refused) return std::move(of.got);
    auto why = of.refused ? std::move(*of.refused) : lost(what);
    if (!of.ended) {
        why.in_doubt = what.writes && sent;
        close();
    }
    return tl::unexpected(std::move(why));
}

result<std::vector<rows>> connection::impl::exchange(const group& what) {
    auto outcome = attempt(what, true);
    if (outcome || db == nullptr || !is_about_plan(last_refusal)) return outcome;
    if (shows_pooler(last_refusal)) {
        kept.decide(false);
    } else {
        kept.forget();
    }
    // Nothing of it was committed. What an earlier group has done in its transaction is lost.
    if (what.of == group::part::further) return outcome;
    if (what.of == group::part::first) {
        if (auto undone = roll_back(); !undone) return undone;
    }
    return attempt(what, false);
}

result<std::vector<rows>> connection::impl::roll_back() {
    return attempt({{&rollback_statement()}, false, group::part::further}, false);
}

error connection::impl::lost(const group& what) const {
    const auto& doing = what.statements.back()->doing();
    if (std::any_of(what.statements.begin(), what.statements.end(), [](const auto* one) {
            return !c_parameters(*one).fits;
        })) {
        return {
            errc::invalid_argument,
            retry_advice::never,
            false,
            fmt::format("cannot {} {}: a value is larger than 2 GB; make it smaller", doing, name)};
    }
    if (gave_up == waited::stopped) {
        return {
            errc::cancelled,
            retry_advice::never,
            false,
            fmt::format("cannot {} {}: this process is stopping", doing, name)};
    }
    if (gave_up == waited::late) {
        return {
            errc::unavailable,
            retry_advice::after_delay,
            false,
            fmt::format(
                "cannot {} {}: no reply within {} ms; the server or the network is overloaded or gone",
                doing,
                name,
                present.reply.count()
            )};
    }
    return {
        errc::unavailable,
        retry_advice::now,
        false,
        fmt::format("cannot {} {}: the connection was lost; a new one is made", doing, name)};
}

void connection::impl::close() {
    if (db != nullptr && gave_up != waited::ready) request_cancel(db.get());
    db.reset();
}

}  // namespace millrace::postgres
