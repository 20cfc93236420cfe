// The lanes alone against a model of the table: whatever the sink and the outbox answer, the rows of a lane
// leave in order of id, each once, none is forgotten, and memory stays within its share.
#include "relay/lanes.hpp"
#include "rng.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace millrace {
namespace {

using namespace std::chrono_literals;

struct lanes_model {
    enum class where { in_table, held, gone };
    struct modelled {
        bool suspect;
        where is{where::in_table};
    };

    explicit lanes_model(std::uint64_t seed) : random(seed), options(options_of(seed)) {
        rows->reserve(row_count);
        for (std::size_t i = 0; i < row_count; ++i) {
            outbox_row row;
            row.id = row_id{static_cast<std::int64_t>(i)};
            row.topic = rows->store(random.chance(80) ? "t" : "u");
            if (random.chance(90)) row.key = rows->store("k" + std::to_string(random.below(4)));
            row.value = rows->store("v");
            rows->add(row);
            model.push_back({random.chance(30)});
        }
        batch = memory.adopt(rows);
    }

    static relay_options options_of(std::uint64_t seed) {
        relay_options options;
        options.on_poison = seed % 2 == 0 ? poison_policy::park_row : poison_policy::park_key;
        options.max_attempts = 2;
        options.retry_min = 1ms;
        options.retry_max = 20ms;
        options.window_rows = 32;
        options.delete_rows = 1 + seed % 4;
        options.probes_in_flight = 1 + seed % 5;
        return options;
    }

    static lane_ref lane_of(const outbox_row& row) { return lane_ref(row); }

    // A row leaves its lane: published, or buried.
    void leave(const held_row& row) {
        auto& is = model[static_cast<std::size_t>(row.id().value())].is;
        RC_ASSERT(is != where::gone);
        is = where::gone;
        for (const auto& lower : rows->rows()) {
            if (lower.id >= row.id()) break;
            if (lane_of(lower) == lane_of(*row.row))
                RC_ASSERT(model[static_cast<std::size_t>(lower.id.value())].is == where::gone);
        }
        ++left;
    }

    void give_up(const held_row& row) {
        auto& is = model[static_cast<std::size_t>(row.id().value())].is;
        RC_ASSERT(is == where::held);
        is = where::in_table;
    }

    void read(std::size_t most) {
        if (machine.wants_rewind() && machine.deferred_from()) {
            cursor = std::min(cursor, static_cast<std::size_t>(machine.deferred_from()->value()));
            machine.rewound();
        }
        for (; most > 0 && cursor < row_count; --most, ++cursor) {
            auto& known = model[cursor];
            if (known.is != where::in_table) continue;
            const auto row = memory.keep(rows->rows()[cursor], batch);
            if (known.suspect || machine.claims(*row.row)) {
                if (machine.hold({row, known.suspect}, 0)) known.is = where::held;
            } else {
                leave(row);
            }
        }
        RC_ASSERT(machine.rows_held() <= options.window_rows / 2 + 1);
    }

    void advance() {
        auto work = machine.advance(now, main, 4, 1'000'000);
        RC_ASSERT(!work.stop);
        for (const auto& row : work.healthy)
            leave(row);
        for (auto& probe : work.probes)
            probes.emplace_back(probe.number, probe.row);
        for (auto& burial : work.burials)
            burials.emplace_back(burial.number, burial.what);
        RC_ASSERT(probes.size() <= options.probes_in_flight);
    }

    void answer_probe(bool calm) {
        if (probes.empty()) return;
        const auto [number, row] = take(probes);
        result<publish_outcome> outcome;
        const auto dice = calm ? 100 : random.below(100);
        const auto id = row.row->id;
        if (dice < 15) {
            outcome = fail(errc::throttled, "slow", retry_advice::after_delay);
        } else if (dice < 25) {
            outcome = fail(errc::permission_denied, "locked");
        } else if (dice < 40) {
            outcome->failures = {
                {id, {errc::refused_topic, retry_advice::after_delay, false, "topic"}, false}};
        } else if (dice < 55) {
            outcome->failures = {{id, {errc::refused_record, retry_advice::never, false, "bad"}, false}};
        }
        const auto ended = machine.probed(now, random.next(), number, outcome);
        RC_ASSERT(ended.published.has_value() == (dice >= 55));
        if (ended.published) leave(*ended.published);
    }

    void answer_burial(bool calm) {
        if (burials.empty()) return;
        const auto [number, what] = take(burials);
        const bool works = calm || random.chance(70);
        const auto ended = machine.buried(
            now, random.next(), number, works ? result<void>{} : fail(errc::unavailable, "down")
        );
        RC_ASSERT(ended.gone.size() == (works ? what.rows.size() : 0));
        for (const auto& row : ended.gone)
            leave(row);
        for (const auto& row : ended.forgotten)
            give_up(row);
    }

    template <class T>
    T take(std::deque<T>& from) {
        const auto at = from.begin() + static_cast<std::ptrdiff_t>(random.below(from.size()));
        auto taken = std::move(*at);
        from.erase(at);
        return taken;
    }

    void run() {
        for (auto i = 0; i < 300; ++i) {
            now += nanoseconds{static_cast<std::int64_t>(random.below(5'000'000))};
            if (random.chance(50)) read(random.below(20));
            if (random.chance(70)) advance();
            if (random.chance(60)) answer_probe(false);
            if (random.chance(60)) answer_burial(false);
        }
        for (auto i = 0; i < 5'000 && left < row_count; ++i) {
            now += 5ms;
            read(20);
            advance();
            answer_probe(true);
            answer_burial(true);
        }
        RC_ASSERT(left == row_count);
        advance();
        RC_ASSERT(machine.rows_held() == 0U);
        RC_ASSERT(machine.probe_bytes_in_flight() == 0U);
    }

    static constexpr std::size_t row_count = 150;

    sim::rng random;
    relay_options options;
    sink_view sink;
    lanes machine{options, sink};
    main_channel main{options};
    held_rows memory;
    std::shared_ptr<row_batch> rows = std::make_shared<row_batch>();
    held_batch* batch{nullptr};
    std::vector<modelled> model;
    std::size_t cursor{0};
    std::size_t left{0};
    mono_time now{};
    std::deque<std::pair<std::uint64_t, outgoing_row>> probes;
    std::deque<std::pair<std::uint64_t, bury_request>> burials;
};

TEST(LanesProperty, TheRowsOfALaneLeaveInOrderEachOnceWhateverTheAnswers) {
    EXPECT_TRUE(rc::check("in order, each once", [](std::uint64_t seed) { lanes_model(seed).run(); }));
}

}  // namespace
}  // namespace millrace
