// Whatever is wanted, answered and refused, in whatever order: what must hold of the cache always does.
#include "schema_cache.hpp"
#include "unit/schema_registry/cache_script.hpp"

#include <random>

#include <gtest/gtest.h>

namespace millrace::registry {
namespace {

using namespace std::chrono_literals;
using namespace test;

constexpr std::uint32_t subjects = 12;
constexpr std::int32_t versions = 3;

/// A registry whose schemas need one another at random, some of them in circles.
class world {
public:
    explicit world(unsigned seed) : random_(seed), on_(narrow(seed)) {}

    void run(int steps) {
        for (int i = 0; i < steps; ++i) {
            step();
            look();
        }
        // In the end the registry is well, and whoever waits is told.
        for (int i = 0; i < 10'000 && (on_.cache.counters().waiters > 0 || !asked_.empty()); ++i) {
            if (asked_.empty()) {
                (void)on_.sleep();
            } else {
                reply(true);
            }
            look();
        }
        EXPECT_EQ(on_.told.size(), last_waiter_);
    }

private:
    static schema_cache_options narrow(unsigned seed) {
        auto options = patient();
        options.requests_max = 1 + seed % 4;
        options.entries_max = 6 + seed % 40;
        options.bytes_max = seed % 3 == 0 ? 65'536 : std::size_t{1} << 20;
        options.waiters_max = 5 + seed % 50;
        options.reference_depth_max = 2 + seed % 5;
        options.references_max = 3 + seed % 20;
        options.reference_bytes_max = 30'000;
        return options;
    }
    std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>(random_() % limit); }

    schema_choice any_choice() {
        if (below(2) == 0) return schema_choice::latest();
        return schema_choice::version(1 + static_cast<std::int32_t>(below(versions)));
    }

    void step() {
        switch (below(8)) {
            case 0:
                on_.at(
                    std::chrono::duration_cast<milliseconds>(on_.now.time_since_epoch()) +
                    milliseconds{below(40'000)}
                );
                return;
            case 1:
                if (on_.cache.wake_at())
                    on_.at(std::chrono::ceil<milliseconds>(
                        std::max(*on_.cache.wake_at(), on_.now).time_since_epoch()
                    ));
                return;
            case 2:
            case 3:
                on_.want(std::to_string(below(subjects)), ++last_waiter_, any_choice());
                return;
            case 4: {
                const auto found = on_.cache.find(on_.now, std::to_string(below(subjects)), any_choice());
                EXPECT_FALSE(found.schema && found.why);
                if (found.schema) require_whole(*found.schema);
                return;
            }
            default:
                if (!asked_.empty()) reply(below(3) > 0);
        }
    }

    /// A schema is never given without each that it needs, and those stand behind what they need.
    static void require_whole(const resolved_schema& given) {
        const auto known = [&](const schema_reference& which, std::size_t before) {
            for (std::size_t i = 0; i < before; ++i) {
                const auto& each = *given.references[i];
                if (each.subject == which.subject && each.version == which.version) return true;
            }
            return false;
        };
        for (std::size_t i = 0; i < given.references.size(); ++i)
            for (const auto& each : given.references[i]->schema->references)
                EXPECT_TRUE(known(each, i));
        for (const auto& each : given.self->schema->references)
            EXPECT_TRUE(known(each, given.references.size()));
    }

    void reply(bool well) {
        const auto at = below(static_cast<std::uint32_t>(asked_.size()));
        const auto asked = asked_[at];
        asked_.erase(asked_.begin() + at);
        if (well) {
            const auto subject = static_cast<std::uint32_t>(std::stoul(asked));
            const auto v = asked.find(" v");
            on_.answer(
                asked,
                stored(
                    subject,
                    v == std::string::npos ? 1 + static_cast<std::int32_t>(below(versions))
                                           : std::stoi(asked.substr(v + 2))
                )
            );
            return;
        }
        constexpr failure_kind kinds[] = {
            failure_kind::unreachable,
            failure_kind::out_of_order,
            failure_kind::throttled,
            failure_kind::unauthorized,
            failure_kind::no_such_subject,
            failure_kind::no_such_version,
            failure_kind::refused};
        on_.fail(asked, kinds[below(7)], milliseconds{below(2) * 2'000});
    }

    static registered_schema stored(std::uint32_t subject, std::int32_t version) {
        const auto id = subject * versions + static_cast<std::uint32_t>(version);
        std::mt19937 of(id);
        std::vector<schema_reference> all;
        for (auto left = of() % 4; left > 1; --left)
            all.push_back(
                needs(std::to_string(of() % subjects), 1 + static_cast<std::int32_t>(of() % versions))
            );
        return schema(id, version, std::move(all), of() % 10'000);
    }

    void look() {
        for (const auto& line : on_.did())
            if (line.starts_with("ask ")) asked_.push_back(line.substr(4));
        const auto& counted = on_.cache.counters();
        EXPECT_EQ(counted.waiters, last_waiter_ - on_.told.size());
        EXPECT_LE(counted.entries, 6U + 40U);
    }

    std::mt19937 random_;
    cache_script on_;
    schema_cache::waiter last_waiter_{0};
    std::vector<std::string> asked_;
};

TEST(SchemaCacheRandom, TellsEveryoneOnceAndAsksForEachOnceAtATime) {
    for (unsigned seed = 1; seed <= 300; ++seed) {
        world(seed).run(400);
        ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
    }
}

}  // namespace
}  // namespace millrace::registry
