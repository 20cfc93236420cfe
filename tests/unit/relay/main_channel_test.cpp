#include "relay/main_channel.hpp"

#include "bare_relay.hpp"

#include <array>
#include <memory>

#include <gtest/gtest.h>

namespace millrace {
namespace {

/// Whether main takes a refusal of the only row of a request for a word about that row.
bool is_judged(bool shared_blame) {
    const auto batch = std::make_shared<row_batch>();
    outbox_row row;
    row.id = row_id{1};
    batch->add(row);
    held_rows memory;
    auto* const held = memory.adopt(batch);
    const std::array rows{memory.keep(batch->rows()[0], held)};
    const relay_options options;
    main_channel main(options);
    main.queue(rows);
    const auto sent = main.next({}, {}, 10, 1'000);
    const error why{errc::refused_record, retry_advice::never, false, "too large"};
    EXPECT_TRUE(main.published(sent.value().number, publish_outcome{{{row_id{1}, why, shared_blame}}}).empty()
    );
    EXPECT_TRUE(main.take_reset({}));
    main.reset_done({}, 0, {});
    return main.reopen({}, 0).value().at(0).alone;
}

TEST(MainChannel, ASuspicionIsNoVerdictThoughTheRequestHeldThatRowAlone) {
    EXPECT_FALSE(is_judged(true));
    EXPECT_TRUE(is_judged(false));
}

TEST(Lanes, ThatNeedNoPlaceOnProbeDoNotWaitForOne) {
    test::bare_relay w({.probes_in_flight = 1});
    w.suspect = [](const outbox_row&) {
        return error{errc::unavailable, retry_advice::after_delay, false, "no leader"};
    };
    w.start({});
    auto rows = std::make_shared<row_batch>();
    for (std::int64_t i = 1; i <= 3; ++i) {
        outbox_row row;
        row.id = row_id{i};
        row.topic = "t";
        if (i == 3) row.malformed = "broken";
        rows->add(row);
    }
    w.step(relay_event::fetched{
        w.number_of<relay_action::fetch>(), fetch_reply{.ahead = std::move(rows), .table_identity = "a"}});
    EXPECT_NE(w.find<relay_action::publish>(), nullptr);
    const auto* const bury = w.find<relay_action::bury>();
    ASSERT_NE(bury, nullptr) << "the second row waits for the place of the first, the third for none";
    EXPECT_EQ(bury->request.rows, std::vector{row_id{3}});
}

TEST(MainChannel, ANewLifeWaitsUntilTheProbesOfTheOldOneAreGoneToo) {
    const relay_options options;
    main_channel main(options);
    main.clear(false);
    EXPECT_FALSE(main.take_reset({})) << "nothing was under way";
    main.clear(true);
    EXPECT_FALSE(main.settled(0)) << "no lane may probe";
    EXPECT_TRUE(main.take_reset({}));
    EXPECT_TRUE(main.resets_probes());
    main.clear(true);  // another life ends before that
    main.reset_done({}, 0, {});
    EXPECT_FALSE(main.reopen({}, 0)) << "the second life's probes may be younger than the reset";
    EXPECT_TRUE(main.take_reset({}));
    EXPECT_TRUE(main.resets_probes());
    main.reset_done({}, 0, {});
    EXPECT_TRUE(main.reopen({}, 0));
    EXPECT_TRUE(main.settled(0));
    main.clear(false);
    EXPECT_FALSE(main.take_reset({}));
}

}  // namespace
}  // namespace millrace
