#include "contract/event_sink_contract.hpp"

#include <algorithm>

#include <gmock/gmock.h>

namespace millrace::test {

// Instantiated where an implementation joins.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(EventSinkContract);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(FullEventSinkContract);

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

std::vector<outgoing_row> EventSinkContract::rows(const std::vector<event>& events) {
    auto batch = std::make_shared<row_batch>();
    batch->reserve(events.size());
    const auto keep = [&](const std::optional<std::string>& bytes) {
        return bytes ? std::optional(batch->store(*bytes)) : std::nullopt;
    };
    for (const auto& e : events) {
        std::vector<record_header> headers;
        for (const auto& h : e.headers)
            headers.push_back({batch->store(h.name), keep(h.value)});
        outbox_row row;
        row.id = next_row;
        row.topic = batch->store(e.topic);
        row.key = keep(e.key);
        row.value = keep(e.value);
        row.headers = batch->store(std::move(headers));
        batch->add(row);
        next_row = row_id{next_row.value() + 1};
    }
    std::vector<outgoing_row> out;
    for (const auto& row : batch->rows())
        out.push_back({&row, batch});
    return out;
}

std::shared_ptr<sent> EventSinkContract::publish(channel where, const std::vector<event>& events) {
    auto request = std::make_shared<sent>();
    sink.publish(where, rows(events), epoch{1}, [request](result<publish_outcome> r) {
        ++request->completions;
        request->outcome.emplace(std::move(r));
    });
    EXPECT_EQ(request->completions, 0) << "completed inside the call";
    return request;
}

std::shared_ptr<sent> EventSinkContract::reset() {
    auto request = std::make_shared<sent>();
    sink.reset_main([request](result<void> r) {
        ++request->completions;
        request->outcome.emplace(r.map([] { return publish_outcome{}; }));
    });
    EXPECT_EQ(request->completions, 0) << "completed inside the call";
    return request;
}

void EventSinkContract::wait(const std::shared_ptr<sent>& request) {
    EXPECT_TRUE(world->run_until([&] { return request->completions > 0; })) << "was never completed";
    EXPECT_EQ(request->completions, 1);
}

std::vector<std::pair<std::size_t, errc>> EventSinkContract::failures(const sent& request, row_id first) {
    std::vector<std::pair<std::size_t, errc>> found;
    EXPECT_TRUE(request.outcome && *request.outcome);
    if (!request.outcome || !*request.outcome) return found;
    for (const auto& failure : (*request.outcome)->failures) {
        EXPECT_FALSE(failure.shared_blame);
        found.emplace_back(static_cast<std::size_t>(failure.id.value() - first.value()), failure.why.code);
    }
    EXPECT_TRUE(std::ranges::is_sorted(found)) << "failures are listed by id";
    return found;
}

std::vector<std::pair<std::size_t, errc>> EventSinkContract::outcome(
    channel where, const std::vector<event>& events
) {
    const auto first = next_row;
    const auto request = publish(where, events);
    wait(request);
    return failures(*request, first);
}

std::string EventSinkContract::values(const std::string& topic) {
    std::string all;
    for (const auto& e : world->published(topic))
        all.append(e.value.value_or("-")).append(" ");
    return all;
}

TEST_P(EventSinkContract, PublishesRowsInTheOrderGiven) {
    EXPECT_THAT(outcome(channel::main, {order("a"), order("b"), order("c")}), IsEmpty());
    EXPECT_EQ(values(), "a b c ");
}

TEST_P(EventSinkContract, PublishesToTheTopicOfEachRow) {
    const event payment{.topic = "payments", .key = "k", .value = "p"};
    EXPECT_THAT(outcome(channel::main, {order("a"), payment, order("b")}), IsEmpty());
    EXPECT_EQ(values("orders"), "a b ");
    EXPECT_EQ(values("payments"), "p ");
}

TEST_P(EventSinkContract, KeepsAnyBytesOfAValue) {
    const std::string bytes("\0\xff\n", 3);
    EXPECT_THAT(outcome(channel::main, {order(bytes), order("")}), IsEmpty());
    const auto seen = world->published("orders");
    ASSERT_EQ(seen.size(), 2U);
    EXPECT_EQ(seen[0].key, "k");
    EXPECT_EQ(seen[0].value, bytes);
    EXPECT_EQ(seen[1].value, "");
}

TEST_P(FullEventSinkContract, KeepsAnyKeyTombstonesAndHeaders) {
    const std::string bytes("\0\xff\n", 3);
    const std::vector<event> events{
        {"orders", bytes, bytes, {{"h", bytes}, {"", ""}, {"none", std::nullopt}}, {}},
        {"orders", "", "", {}, {}},
        {"orders", std::nullopt, std::nullopt, {}, {}}};
    EXPECT_THAT(outcome(channel::main, events), IsEmpty());
    auto seen = world->published("orders");
    for (auto& e : seen)
        e.topic = "orders";
    EXPECT_EQ(seen, events);
}

TEST_P(EventSinkContract, KeepsTheOrderOfManyRequestsInFlight) {
    std::vector<std::shared_ptr<sent>> requests;
    std::string expected;
    for (std::size_t i = 0; i < sink.limits().requests_in_flight_max; ++i) {
        std::vector<event> events;
        for (int row = 0; row < 5; ++row) {
            events.push_back(order(std::to_string(i) + "." + std::to_string(row)));
            expected += *events.back().value + " ";
        }
        requests.push_back(publish(channel::main, events));
    }
    for (const auto& request : requests) {
        wait(request);
        EXPECT_THAT(failures(*request, row_id{0}), IsEmpty());
    }
    EXPECT_EQ(values(), expected);
}

TEST_P(EventSinkContract, StopsMainAtTheFirstRefusedRow) {
    const auto refused =
        outcome(channel::main, {order("a"), order("b"), order(world->poison()), order("c"), order("d")});
    EXPECT_THAT(
        refused, ElementsAre(Pair(2, errc::refused_record), Pair(3, errc::purged), Pair(4, errc::purged))
    );
    EXPECT_EQ(values(), "a b ");
}

TEST_P(EventSinkContract, PurgesRequestsBehindARefusalUntilAReset) {
    const auto first = next_row;
    const auto refused = publish(channel::main, {order("a"), order(world->poison())});
    const auto behind = publish(channel::main, {order("b"), order("c")});
    wait(refused);
    wait(behind);
    EXPECT_THAT(failures(*refused, first), ElementsAre(Pair(1, errc::refused_record)));
    EXPECT_THAT(failures(*behind, first), ElementsAre(Pair(2, errc::purged), Pair(3, errc::purged)));
    EXPECT_THAT(outcome(channel::main, {order("d")}), ElementsAre(Pair(0, errc::purged)));
    EXPECT_EQ(values(), "a ");

    wait(reset());
    EXPECT_THAT(outcome(channel::main, {order("b"), order("c")}), IsEmpty());
    EXPECT_EQ(values(), "a b c ");
}

TEST_P(EventSinkContract, RefusesATopicThatDoesNotExistAndNamesIt) {
    const auto first = next_row;
    const event lost{.topic = "no-such-topic", .key = "k", .value = "x"};
    const auto request = publish(channel::main, {order("a"), lost, order("b")});
    wait(request);
    const auto failed = failures(*request, first);
    ASSERT_THAT(failed, testing::Not(IsEmpty()));
    EXPECT_EQ(failed.front(), std::pair(std::size_t{1}, errc::refused_topic));
    const bool all_stopped = failed.size() == 2 && failed.back() == std::pair(std::size_t{2}, errc::purged);
    EXPECT_TRUE(all_stopped || (world->goes_on_with_other_lanes() && failed.size() == 1));
    const auto before = all_stopped ? std::string("a ") : std::string("a b ");
    const auto& why = (*request->outcome)->failures.front().why;
    EXPECT_NE(why.detail.find("no-such-topic"), std::string::npos) << why.detail;
    EXPECT_EQ(values(), before);

    world->create_topic("no-such-topic");
    wait(reset());
    EXPECT_THAT(outcome(channel::main, {lost, order("b")}), IsEmpty());
    EXPECT_EQ(values("no-such-topic"), "x ");
    EXPECT_EQ(values(), before + "b ");
}

TEST_P(EventSinkContract, AResetCompletesWhenNothingOfTheOldChannelCanFollow) {
    std::vector<std::shared_ptr<sent>> old;
    for (std::size_t i = 0; i < sink.limits().requests_in_flight_max; ++i)
        old.push_back(publish(channel::main, {order("old-" + std::to_string(i))}));
    wait(reset());
    const auto at_reset = values();
    EXPECT_THAT(outcome(channel::main, {order("new")}), IsEmpty());
    EXPECT_EQ(values(), at_reset + "new ");

    std::string expected;
    for (std::size_t i = 0; i < old.size(); ++i) {
        wait(old[i]);
        const auto failed = failures(*old[i], row_id{0});
        if (failed.empty()) {
            expected += "old-" + std::to_string(i) + " ";
        } else {
            EXPECT_EQ(failed.front().second, errc::purged);
        }
    }
    EXPECT_EQ(at_reset, expected) << "what was not published says so, and the other way round";
}

TEST_P(EventSinkContract, AResetOfAHealthyChannelDoesNoHarm) {
    EXPECT_THAT(outcome(channel::main, {order("a")}), IsEmpty());
    wait(reset());
    wait(reset());
    EXPECT_THAT(outcome(channel::main, {order("b")}), IsEmpty());
    EXPECT_EQ(values(), "a b ");
}

TEST_P(EventSinkContract, ProbeJudgesARowAloneAndStopsNothing) {
    EXPECT_THAT(
        outcome(channel::probe, {order(world->poison())}), ElementsAre(Pair(0, errc::refused_record))
    );
    EXPECT_THAT(outcome(channel::probe, {order("a")}), IsEmpty());
    EXPECT_THAT(outcome(channel::main, {order("b")}), IsEmpty());
    EXPECT_EQ(values(), "a b ");
}

TEST_P(EventSinkContract, ProbeWorksWhileMainIsStopped) {
    EXPECT_THAT(outcome(channel::main, {order(world->poison())}), ElementsAre(Pair(0, errc::refused_record)));
    EXPECT_THAT(outcome(channel::probe, {order("a")}), IsEmpty());
    EXPECT_THAT(outcome(channel::main, {order("b")}), ElementsAre(Pair(0, errc::purged)));
    EXPECT_EQ(values(), "a ");
}

TEST_P(EventSinkContract, SuspectsNothingOfAnOrdinaryRow) {
    EXPECT_EQ(sink.suspect(*rows({order("a")}).front().row), std::nullopt);
}

TEST_P(EventSinkContract, HasLimits) {
    EXPECT_GT(sink.limits().request_rows_max, 0U);
    EXPECT_GT(sink.limits().request_bytes_max, 0U);
    EXPECT_GT(sink.limits().requests_in_flight_max, 0U);
}

}  // namespace millrace::test
