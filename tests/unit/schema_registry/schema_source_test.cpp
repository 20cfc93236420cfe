#include "schema_source.hpp"

#include "rng.hpp"
#include "scheduler.hpp"
#include "unit/remembered_log.hpp"
#include "unit/schema_registry/cache_script.hpp"

#include <deque>

#include <gmock/gmock.h>

namespace millrace::registry {
namespace {

using namespace std::chrono_literals;
using test::schema;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

/// A registry whose answers a test gives by hand; the oldest question first.
class scripted_registry final : public schema_registry {
public:
    void ask(question what, std::function<void(answer)> done) override {
        waiting.emplace_back(std::move(what), std::move(done));
    }
    void reply(answer with) {
        const auto done = std::move(waiting.front().second);
        waiting.pop_front();
        done(std::move(with));
    }
    std::deque<std::pair<question, std::function<void(answer)>>> waiting;
};

struct SchemaSource : testing::Test {
    SchemaSource() {
        auto made = std::make_unique<scripted_registry>();
        registry = made.get();
        source = std::make_unique<schema_source>(home, std::move(made), schema_cache_options{});
    }
    void want(const std::string& subject, schema_choice choice = {}) {
        source->want(subject, choice, [this](const schema_outcome& came) {
            told.push_back(
                came ? std::to_string((*came)->self->id) : std::string(name_of(came.error().kind))
            );
        });
    }
    static registry_failure failure(failure_kind kind) {
        return {kind, {errc::unavailable, retry_advice::after_delay, false, "in so many words"}, 0ms};
    }

    sim::scheduler world;
    sim::rng random{1};
    millrace::test::remembered_log log;
    sim::sim_host home{world, random, {}, &log};
    std::vector<std::string> told;
    scripted_registry* registry{nullptr};
    std::unique_ptr<schema_source> source;
};

TEST_F(SchemaSource, TellsNobodyInsideACall) {
    want("a");
    registry->reply(schema(7, 1));
    EXPECT_THAT(told, ElementsAre());
    world.run_for(1ms);
    EXPECT_THAT(told, ElementsAre("7"));
    want("a");
    EXPECT_EQ(told.size(), 1U);
    world.run_for(1ms);
    EXPECT_EQ(told.size(), 2U);
    EXPECT_EQ(source->find("a", {}).schema->self->id, 7U);
}

TEST_F(SchemaSource, AsksForWhatWasChosenAndRegistersOnlyWhatItMay) {
    want("a");
    want("a", schema_choice::version(3));
    want("", schema_choice::id(9));
    want("a", source->given({schema_type::json, "one", {}}, false));
    want("a", source->given({schema_type::json, "two", {}}, true));
    ASSERT_EQ(registry->waiting.size(), 5U);
    EXPECT_FALSE(std::get<ask_version>(registry->waiting[0].first).version);
    EXPECT_EQ(std::get<ask_version>(registry->waiting[1].first).version, 3);
    EXPECT_EQ(std::get<ask_id>(registry->waiting[2].first).id, 9U);
    EXPECT_EQ(std::get<ask_text>(registry->waiting[3].first).schema->text, "one");
    EXPECT_EQ(std::get<register_text>(registry->waiting[4].first).schema->text, "two");
}

TEST_F(SchemaSource, AsksAgainByItselfAndLogsTheTroubleOnce) {
    want("a");
    for (int i = 0; i < 5; ++i) {
        registry->reply(tl::unexpected(failure(failure_kind::unauthorized)));
        EXPECT_TRUE(registry->waiting.empty());
        world.run_for(10s);
        ASSERT_EQ(registry->waiting.size(), 1U);
    }
    registry->reply(schema(7, 1));
    world.run_for(1ms);
    EXPECT_THAT(told, ElementsAre("7"));
    EXPECT_THAT(
        log.lines,
        ElementsAre(
            "schema_registry.trouble kind=unauthorized detail=in so many words ",
            "schema_registry.recovered after_ms=50000 "
        )
    );
}

TEST_F(SchemaSource, SaysThatItGoesOnWithWhatItKnew) {
    want("a");
    registry->reply(schema(7, 1));
    world.run_for(61s);
    EXPECT_EQ(source->find("a", {}).schema, nullptr);
    registry->reply(tl::unexpected(failure(failure_kind::unreachable)));
    EXPECT_TRUE(source->find("a", {}).stale);
    EXPECT_THAT(
        log.of("schema_registry.stale"), ElementsAre(AllOf(HasSubstr("subject=a"), HasSubstr("age_ms=61000")))
    );
}

TEST_F(SchemaSource, DropsWhatComesAfterItsEnd) {
    want("a");
    const auto late = std::move(registry->waiting.front().second);
    source.reset();
    late(schema(7, 1));
    world.run_for(1h);
    EXPECT_THAT(told, ElementsAre());
}

}  // namespace
}  // namespace millrace::registry
