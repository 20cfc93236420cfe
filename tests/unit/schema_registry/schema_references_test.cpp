#include "schema_cache.hpp"
#include "unit/schema_registry/cache_script.hpp"

#include <gmock/gmock.h>

namespace millrace::registry {
namespace {

using namespace std::chrono_literals;
using namespace test;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr auto v1 = schema_choice::version(1);

/// The ids of what a schema needs, in order.
std::vector<std::uint32_t> needed_by(const schema_outcome& told) {
    std::vector<std::uint32_t> ids;
    for (const auto& each : told.value()->references)
        ids.push_back(each->id);
    return ids;
}

/// A chain: c1 needs c2, c2 needs c3, and so on to `length`.
void answer_chain(cache_script& on, int length) {
    for (int i = 1; i <= length && on.under_way() > 0; ++i) {
        auto next =
            i < length ? std::vector{needs("c" + std::to_string(i + 1))} : std::vector<schema_reference>{};
        on.answer("c" + std::to_string(i) + " v1", schema(static_cast<std::uint32_t>(i), 1, std::move(next)));
        (void)on.did();
    }
}

TEST(SchemaReferences, AreAskedForBeforeASchemaIsGiven) {
    cache_script on;
    on.want("a", 1);
    (void)on.did();
    on.answer("a latest", schema(1, 5, {needs("b"), needs("c", 3)}));
    EXPECT_THAT(on.did(), ElementsAre("ask b v1", "ask c v3"));
    EXPECT_EQ(on.find("a"), "not yet");
    on.answer("c v3", schema(3, 3));
    EXPECT_THAT(on.did(), IsEmpty());
    on.answer("b v1", schema(2, 1));
    EXPECT_THAT(on.did(), ElementsAre("tell 1: 1"));
    EXPECT_THAT(needed_by(on.told.at(1)), ElementsAre(2, 3));
    const auto& given = *on.told.at(1);
    EXPECT_EQ(given->find(needs("c", 3))->id, 3U);
    EXPECT_EQ(given->find(needs("c", 2)), nullptr);
}

TEST(SchemaReferences, StandBehindWhatTheyNeedAndEachOnce) {
    cache_script on;
    on.want("a", 1, v1);
    (void)on.did();
    on.answer("a v1", schema(1, 1, {needs("b"), needs("c")}));
    (void)on.did();
    on.answer("b v1", schema(2, 1, {needs("d")}));
    on.answer("c v1", schema(3, 1, {needs("d"), needs("b")}));
    EXPECT_THAT(on.did(), ElementsAre("ask d v1"));
    on.answer("d v1", schema(4, 1));
    EXPECT_THAT(on.did(), ElementsAre("tell 1: 1"));
    EXPECT_THAT(needed_by(on.told.at(1)), ElementsAre(4, 2, 3));
}

TEST(SchemaReferences, AreAskedForOnceHoweverManySchemasNeedThem) {
    cache_script on;
    for (schema_cache::waiter who = 1; who <= 3; ++who)
        on.want("a" + std::to_string(who), who);
    (void)on.did();
    for (std::uint32_t n = 1; n <= 3; ++n)
        on.answer("a" + std::to_string(n) + " latest", schema(n, 1, {needs("common")}));
    EXPECT_THAT(on.did(), ElementsAre("ask common v1"));
    on.answer("common v1", schema(9, 1));
    EXPECT_THAT(on.did(), ElementsAre("tell 1: 1", "tell 2: 2", "tell 3: 3"));
    on.want("common", 4, v1);
    EXPECT_THAT(on.did(), ElementsAre("tell 4: 9"));
}

TEST(SchemaReferences, ThatFormACircleAreRefused) {
    cache_script on;
    on.want("a", 1, v1);
    (void)on.did();
    on.answer("a v1", schema(1, 1, {needs("b")}));
    (void)on.did();
    on.answer("b v1", schema(2, 1, {needs("c")}));
    (void)on.did();
    on.answer("c v1", schema(3, 1, {needs("b")}));
    EXPECT_THAT(on.did(), ElementsAre("tell 1: bad_references"));
    EXPECT_THAT(on.told.at(1).error().why.detail, HasSubstr("needs itself by way of its references"));
}

TEST(SchemaReferences, ToTheSchemaItselfAreRefused) {
    cache_script on;
    on.want("a", 1, v1);
    on.want("a", 2);
    (void)on.did();
    on.answer("a v1", schema(1, 1, {needs("a")}));
    on.answer("a latest", schema(1, 1, {needs("a")}));
    EXPECT_THAT(on.did(), ElementsAre("tell 1: bad_references", "tell 2: bad_references"));
}

TEST(SchemaReferences, KeepToALimitOfDepth) {
    auto options = patient();
    options.reference_depth_max = 3;
    for (const int length : {4, 5}) {  // the first one and those that it needs
        cache_script on(options);
        on.want("c1", 1, v1);
        (void)on.did();
        answer_chain(on, length);
        EXPECT_EQ(on.told.at(1).has_value(), length == 4) << length;
        EXPECT_EQ(on.cache.counters().requests, 4U) << "what would be too deep is not asked for";
        if (length == 4) continue;
        EXPECT_THAT(on.told.at(1).error().why.detail, HasSubstr("raise reference_depth_max"));
    }
}

TEST(SchemaReferences, KeepToALimitOfDepthByWayOfWhatIsKnownByAShorterOne) {
    auto options = patient();
    options.reference_depth_max = 3;
    cache_script on(options);
    on.want("c2", 1, v1);
    (void)on.did();
    for (int i = 2; i <= 5; ++i) {
        auto next = i < 5 ? std::vector{needs("c" + std::to_string(i + 1))} : std::vector<schema_reference>{};
        on.answer("c" + std::to_string(i) + " v1", schema(static_cast<std::uint32_t>(i), 1, std::move(next)));
        (void)on.did();
    }
    ASSERT_TRUE(on.told.at(1));
    on.want("a", 2, v1);
    (void)on.did();
    on.answer(
        "a v1", schema(1, 1, {needs("c5"), needs("c2")})
    );  // c5 is met one step away, and at the end of a chain
    EXPECT_THAT(on.did(), ElementsAre("tell 2: bad_references"));
}

TEST(SchemaReferences, KeepToALimitOfTheirNumber) {
    auto options = patient();
    options.references_max = 2;
    for (const bool fits : {true, false}) {
        cache_script on(options);
        on.want("a", 1, v1);
        (void)on.did();
        std::vector<schema_reference> all{needs("b"), needs("c")};
        if (!fits) all.push_back(needs("d"));
        on.answer("a v1", schema(1, 1, all));
        if (fits) {
            EXPECT_THAT(on.did(), ElementsAre("ask b v1", "ask c v1"));
        } else {
            EXPECT_THAT(on.did(), ElementsAre("tell 1: bad_references"));
            EXPECT_THAT(on.told.at(1).error().why.detail, HasSubstr("raise references_max"));
        }
    }
}

TEST(SchemaReferences, KeepToALimitOfTheirBytes) {
    auto options = patient();
    options.reference_bytes_max = 100;
    for (const std::size_t bytes : {100U, 101U}) {
        cache_script on(options);
        on.want("a", 1, v1);
        (void)on.did();
        on.answer("a v1", schema(1, 1, {needs("b")}, 5'000));
        (void)on.did();
        on.answer("b v1", schema(2, 1, {}, bytes));
        EXPECT_THAT(on.did(), ElementsAre(bytes == 100 ? "tell 1: 1" : "tell 1: bad_references"));
    }
}

TEST(SchemaReferences, ThatAreRefusedRefuseWhatNeedsThem) {
    cache_script on;
    on.want("a", 1);
    (void)on.did();
    on.answer("a latest", schema(1, 5, {needs("b"), needs("c")}));
    (void)on.did();
    on.fail("b v1", failure_kind::no_such_version);
    EXPECT_THAT(on.did(), ElementsAre("tell 1: no_such_version"));
    EXPECT_THAT(
        on.told.at(1).error().why.detail,
        HasSubstr("the latest version of the subject \"a\" cannot be used, since it needs what is refused: "
                  "because of b v1")
    );
    on.answer("c v1", schema(3, 1));  // late, and for nobody
    EXPECT_THAT(on.did(), IsEmpty());

    on.at(200ms);
    on.want("a", 2);
    EXPECT_THAT(on.did(), ElementsAre("ask a latest"));
    on.answer("a latest", schema(1, 5, {needs("b"), needs("c")}));
    EXPECT_THAT(on.did(), ElementsAre("ask b v1"));
    on.answer("b v1", schema(2, 1));
    EXPECT_THAT(on.did(), ElementsAre("tell 2: 1"));
}

TEST(SchemaReferences, AreWaitedForInTrouble) {
    cache_script on;
    on.want("a", 1, v1);
    (void)on.did();
    on.answer("a v1", schema(1, 1, {needs("b")}));
    (void)on.did();
    on.fail("b v1", failure_kind::out_of_order);
    EXPECT_THAT(on.did(), ElementsAre("trouble: out_of_order"));
    (void)on.sleep();
    EXPECT_THAT(on.did(), ElementsAre("ask b v1"));
    on.answer("b v1", schema(2, 1));
    EXPECT_THAT(on.did(), ElementsAre(HasSubstr("trouble ended"), "tell 1: 1"));
}

TEST(SchemaReferences, OfANewLatestVersionDoNotTakeTheOldOneAwayInTrouble) {
    cache_script on;
    on.want("a", 1);
    (void)on.did();
    on.answer("a latest", schema(1, 1));
    on.at(50s);
    EXPECT_EQ(on.find("a"), "1");
    (void)on.did();
    on.answer("a latest", schema(2, 2, {needs("b")}));
    EXPECT_THAT(on.did(), ElementsAre("ask b v1"));
    EXPECT_EQ(on.find("a"), "not yet") << "the new one is known, and must be used";
    on.fail("b v1", failure_kind::unreachable);
    EXPECT_EQ(on.find("a"), "1 stale");
    (void)on.sleep();
    EXPECT_THAT(on.did(), Contains("ask b v1"));
    on.answer("b v1", schema(3, 1));
    EXPECT_EQ(on.find("a"), "2");
}

TEST(SchemaReferences, StayForAsLongAsWhatNeedsThem) {
    auto options = patient();
    options.entries_max = 3;
    cache_script on(options);
    on.want("a", 1, v1);
    (void)on.did();
    on.answer("a v1", schema(1, 1, {needs("b")}));
    (void)on.did();
    on.answer("b v1", schema(2, 1));
    on.want("x", 2, v1);
    (void)on.did();
    on.answer("x v1", schema(3, 1));
    EXPECT_EQ(on.find("a", v1), "1");
    on.want("y", 3, v1);  // x has to go: a was used after it, and b is needed
    (void)on.did();
    on.answer("y v1", schema(4, 1));
    EXPECT_EQ(on.find("x", v1), "not yet");
    on.want("b", 4, v1);
    EXPECT_THAT(on.did(), ElementsAre("tell 3: 4", "tell 4: 2"));
}

TEST(SchemaReferences, GoWithWhatNeededThem) {
    auto options = patient();
    options.entries_max = 2;
    cache_script on(options);
    on.want("a", 1);
    (void)on.did();
    on.answer("a latest", schema(1, 1, {needs("b")}));
    (void)on.did();
    on.answer("b v1", schema(2, 1));
    on.at(60s);
    on.want("a", 2);
    (void)on.did();
    on.answer("a latest", schema(3, 2));
    on.want("c", 3, v1);
    EXPECT_THAT(on.did(), ElementsAre("tell 2: 3", "ask c v1"));
    EXPECT_EQ(on.find("a"), "3") << "b had to go, not what is used";
}

TEST(SchemaReferences, OfANewLatestVersionAreWaitedForOnceTheTroubleIsOver) {
    cache_script on;
    on.want("a", 1);
    (void)on.did();
    on.answer("a latest", schema(1, 1));
    on.at(60s);
    (void)on.find("a");
    (void)on.did();
    on.fail("a latest", failure_kind::out_of_order);
    EXPECT_EQ(on.find("a"), "1 stale");
    on.at(70s);
    (void)on.find("a");
    (void)on.did();
    on.answer("a latest", schema(2, 2, {needs("b")}));
    EXPECT_EQ(on.find("a"), "not yet");
    EXPECT_THAT(on.did(), Contains("ask b v1"));
    on.answer("b v1", schema(3, 1));
    EXPECT_EQ(on.find("a"), "2");
}

TEST(SchemaReferences, ThatFindNoRoomAreRefused) {
    auto options = patient();
    options.entries_max = 2;
    cache_script on(options);
    on.want("a", 1, v1);
    (void)on.did();
    on.answer("a v1", schema(1, 1, {needs("b"), needs("c")}));
    EXPECT_THAT(on.did(), ElementsAre("tell 1: cache_full"));
    EXPECT_LE(on.cache.counters().entries, 2U);
}

}  // namespace
}  // namespace millrace::registry
