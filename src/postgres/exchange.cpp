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

}  // namespace

/// Of one group, as it comes in.
struct connection::impl::reply {
    std::vector<rows> got;
    std::optional<error> refused;
    bool ended{false};  ///< The server is ready for the next group: what stands here is final.
};

bool connection::impl::send(const group& what) {
    for (const auto* one : what.statements) {
        const c_parameters bound(*one);
        if (!bound.fits) return false;
        if (PQsendQueryParams(
                db.get(),
                one->sql().c_str(),
                static_cast<int>(bound.types.size()),
                bound.types.data(),
                bound.values.data(),
                bound.lengths.data(),
                bound.formats.data(),
                1
            ) == 0) {
            return false;
        }
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

void connection::impl::read_statement(const statement& what, steady::time_point until, reply& into) {
    for (;;) {
        result_handle got(next(until), &PQclear);
        if (!got) return;
        switch (PQresultStatus(got.get())) {
            case PGRES_TUPLES_OK:
            case PGRES_COMMAND_OK:
            case PGRES_EMPTY_QUERY:
                into.got.emplace_back(got.release());
                break;
            case PGRES_PIPELINE_ABORTED:
                break;
            default:
                note(what, got.get(), into);
                if (PQstatus(db.get()) != CONNECTION_OK) return;
                break;
        }
    }
}

void connection::impl::read_group(const group& what, steady::time_point until, reply& into) {
    const auto alive = [&] { return gave_up == waited::ready && PQstatus(db.get()) == CONNECTION_OK; };
    for (const auto* one : what.statements) {
        if (!alive()) return;
        read_statement(*one, until, into);
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
        note(*what.statements.back(), got.get(), into);
    }
}

std::vector<result<std::vector<rows>>> connection::impl::exchange(const std::vector<group>& groups) {
    std::vector<result<std::vector<rows>>> outcomes;
    outcomes.reserve(groups.size());
    const auto until = steady::now() + present.reply;
    gave_up = waited::ready;
    bool alive = db != nullptr;
    bool broken = false;
    std::size_t sent = 0;
    last_refusal.clear();
    while (alive && sent < groups.size() && send(groups[sent]))
        ++sent;
    alive = alive && flush(until);
    for (std::size_t i = 0; i < groups.size(); ++i) {
        reply of;
        if (i < sent && gave_up == waited::ready) read_group(groups[i], until, of);
        broken = broken || !of.ended;
        if (of.ended && !of.refused) {
            outcomes.emplace_back(std::move(of.got));
            continue;
        }
        auto why = of.refused ? std::move(*of.refused) : lost(groups[i]);
        if (!of.ended) why.in_doubt = groups[i].writes && i < sent;
        outcomes.emplace_back(tl::unexpected(std::move(why)));
    }
    if (!alive || broken || gave_up != waited::ready || sent < groups.size()) close();
    return outcomes;
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
