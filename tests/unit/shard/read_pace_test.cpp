#include "shard/read_pace.hpp"

#include "batches.hpp"
#include "shard/reader.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <random>

#include <gtest/gtest.h>

namespace millrace {
namespace {

using namespace std::chrono_literals;
using R = shard_reader;

constexpr std::size_t mib = std::size_t{1} << 20;
constexpr mono_time start{1h};

/// Offset from the start, rounded to milliseconds.
milliseconds at(mono_time when) {
    return std::chrono::floor<milliseconds>(when - start);
}

TEST(ReadPace, WithoutLimitsAsksForNothing) {
    read_pace pace(0, 0);
    pace.read(start, 100 * mib, 0);
    pace.throttled(start, 0);
    EXPECT_LE(pace.next(), start);
    EXPECT_EQ(pace.share(start), 1.0);
}

TEST(ReadPace, TheFirstReadIsFree) {
    EXPECT_LT(read_pace(5, 2 * mib).next(), start);
}

TEST(ReadPace, SpacesReadsALittleMoreThanAllowed) {
    read_pace pace(5, 0);
    pace.read(start, 10 * mib, 0);
    EXPECT_EQ(at(pace.next()), 204ms);
    pace.read(start + 1s, 0, 0);
    EXPECT_EQ(at(pace.next()), 1'204ms);
}

TEST(ReadPace, AReplyOf10MiBPaysFor5SecondsAndALittleMore) {
    read_pace pace(5, 2 * mib);
    pace.read(start, 10 * mib, 0);
    EXPECT_EQ(at(pace.next()), 5'100ms);
    pace.read(start + 6s, 1 * mib, 0);
    EXPECT_EQ(at(pace.next()), 6'510ms);
    pace.read(start + 60s, 1, 0);  // nothing is saved up while nothing is read
    EXPECT_EQ(at(pace.next()), 60'204ms);
    pace.read(start + 61s, 10 * mib, 999);
    EXPECT_EQ(at(pace.next()), 66'500ms);
}

TEST(ReadPace, BytesThatAreNotPaidYetAreNotForgotten) {
    read_pace pace(5, 2 * mib);
    pace.read(start, 10 * mib, 0);
    pace.read(start + 1s, 2 * mib, 0);
    EXPECT_EQ(at(pace.next()), 6'120ms);
}

TEST(ReadPace, ARefusalWaitsForNoMoreThanAReplyOfTheUsualSize) {
    read_pace pace(5, 2 * mib);
    pace.read(start, 2 * mib, 0);
    pace.read(start + 10s, 0, 0);
    pace.throttled(start + 10s, 999);
    EXPECT_EQ(at(pace.next()), 11s);
}

TEST(ReadPace, ARefusalShrinksTheShareAndTimeLetsItGrow) {
    read_pace pace(5, 0);
    pace.throttled(start, 0);
    EXPECT_DOUBLE_EQ(pace.share(start), 0.7);
    EXPECT_DOUBLE_EQ(pace.share(start + 10s), 0.84);
    pace.read(start, 0, 0);
    EXPECT_EQ(at(pace.next()), 291ms);
    EXPECT_EQ(pace.share(start + 1h), 1.0);
}

TEST(ReadPace, TheShareNeverVanishes) {
    read_pace pace(5, 2 * mib);
    for (int i = 0; i < 100; ++i)
        pace.throttled(start, 0);
    EXPECT_EQ(pace.share(start), 0.125);
    pace.read(start, 0, 0);
    EXPECT_EQ(at(pace.next()), 1'632ms);
}

/// A shard as Kinesis limits it: five reads in any second, and after a reply no read until it is paid.
class limited_shard {
public:
    [[nodiscard]] bool read(mono_time now, std::size_t bytes) {
        while (!reads_.empty() && reads_.front() <= now - 1s)
            reads_.pop_front();
        if (reads_.size() >= 5 || now < paid_at_) {
            ++throttled;
            return false;
        }
        reads_.push_back(now);
        paid_at_ =
            now + nanoseconds{static_cast<std::int64_t>(bytes) * 1'000'000'000 / std::int64_t{2 * mib}};
        return true;
    }

    int throttled{0};

private:
    std::deque<mono_time> reads_;
    mono_time paid_at_{mono_time::min()};
};

/// An application that has fallen behind, with a network between it and the shard.
class application {
public:
    application(limited_shard& shard, std::uint64_t seed) : shard_(shard), random_(seed) {
        shard_options options;
        options.reads_per_second = 5;
        options.read_bytes_per_second = 2 * mib;
        reader_.emplace(options, from::trim_horizon{});
        take(start, R::started{});
        take(start, R::opened{read_cursor{"c"}});
    }

    /// When it does something next.
    [[nodiscard]] mono_time due() const { return due_; }

    void turn(mono_time now, std::size_t bytes) {
        if (!sent_) {
            take(now, R::woken{});
        } else if (!arrived_) {
            arrived_ = true;
            fine_ = shard_.read(now, bytes);
            due_ = now + travel();
        } else if (fine_) {
            ++reads;
            bytes_read += bytes;
            arrived_ = false;
            const auto sent = *std::exchange(sent_, std::nullopt);
            take(now, R::records{read_cursor{"c"}, std::nullopt, 1h, sent, bytes});
        } else {
            arrived_ = false;
            sent_.reset();
            take(now, R::failed{{errc::throttled, retry_advice::after_delay, false, "simulated"}});
        }
    }

    int reads{0};
    std::size_t bytes_read{0};

private:
    nanoseconds travel() { return 5ms + nanoseconds{static_cast<std::int64_t>(random_() % 10'000'000)}; }

    void take(mono_time now, const R::event& what) {
        const auto next = reader_->step(now, random_(), what).next;
        if (const auto* wait = std::get_if<R::wait>(&next)) {
            due_ = wait->until;
        } else if (std::holds_alternative<R::read>(next)) {
            sent_ = now;
            due_ = now + travel();
        }
    }

    limited_shard& shard_;
    std::mt19937_64 random_;
    std::optional<R> reader_;
    std::optional<mono_time> sent_;
    bool arrived_{false};
    bool fine_{false};
    mono_time due_{start};
};

template <std::size_t N>
void run(std::array<application, N>& all, nanoseconds span, std::size_t bytes) {
    for (;;) {
        auto& first = *std::min_element(all.begin(), all.end(), [](const auto& a, const auto& b) {
            return a.due() < b.due();
        });
        if (first.due() >= start + span) return;
        first.turn(first.due(), bytes);
    }
}

TEST(PacedReaders, OneAloneReadsNearlyAsOftenAsItMayAndIsHardlyEverRefused) {
    limited_shard shard;
    std::array all{application(shard, 1)};
    run(all, 300s, 1'000);
    EXPECT_GE(all[0].reads, 1'400);  // of 1,500
    EXPECT_LE(shard.throttled, 15);
}

TEST(PacedReaders, OneAloneReadsNearlyAsMuchAsItMay) {
    limited_shard shard;
    std::array all{application(shard, 1)};
    run(all, 300s, 3 * mib);
    EXPECT_GE(all[0].bytes_read, 540 * mib);  // of 600
    EXPECT_LE(shard.throttled, 15);
}

TEST(PacedReaders, TwoApplicationsOnOneShardBothProgressWithFewRefusals) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        limited_shard shard;
        std::array all{application(shard, seed), application(shard, seed + 100)};
        run(all, 600s, 1'000);
        const int sum = all[0].reads + all[1].reads;
        EXPECT_GE(sum, 2'300);  // of 3,000
        EXPECT_GE(std::min(all[0].reads, all[1].reads), sum / 4) << all[0].reads << " " << all[1].reads;
        EXPECT_LE(shard.throttled, sum / 25);
    }
}

TEST(PacedReaders, TwoApplicationsWithLargeRepliesBothProgress) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        limited_shard shard;
        std::array all{application(shard, seed), application(shard, seed + 100)};
        run(all, 600s, 3 * mib);
        const int sum = all[0].reads + all[1].reads;
        EXPECT_GE(sum, 160);  // of 400
        EXPECT_GE(std::min(all[0].reads, all[1].reads), sum / 6) << all[0].reads << " " << all[1].reads;
        EXPECT_LE(shard.throttled, sum / 2);
    }
}

TEST(PacedReaders, FiveApplicationsOnOneShardAllProgress) {
    limited_shard shard;
    std::array all{
        application(shard, 1),
        application(shard, 2),
        application(shard, 3),
        application(shard, 4),
        application(shard, 5)};
    run(all, 600s, 1'000);
    int sum = 0;
    for (const auto& one : all) {
        EXPECT_GE(one.reads, 300);  // of 600
        sum += one.reads;
    }
    EXPECT_GE(sum, 2'200);  // of 3,000
    EXPECT_LE(shard.throttled, sum / 10);
}

}  // namespace
}  // namespace millrace
