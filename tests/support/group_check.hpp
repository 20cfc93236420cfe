/// Judges what a group of workers did with a stream, from outside: from what was put, from the lines that
/// they printed, and from samples of the rows that they keep.
///
/// The workers append the lines of `millrace consume --print` to one file, so its order is the true order of
/// their deliveries; a moment is a number of its lines. What a fault excuses is said by `disturbed`; a line
/// behind one of a later epoch of its shard has no excuse. One thread.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace::support {

/// A sequence number: decimal digits, compared as a number.
struct decimal {
    std::string digits;

    bool operator==(const decimal&) const = default;
    std::strong_ordering operator<=>(const decimal& other) const {
        if (digits.size() != other.digits.size()) return digits.size() <=> other.digits.size();
        return digits <=> other.digits;
    }
};

/// One row of a shard, as it was read from the store.
struct shard_sample {
    std::string shard;
    std::vector<std::string> parents;
    std::string owner;
    std::uint64_t epoch{0};
    std::uint64_t version{0};
    std::optional<decimal> checkpoint;
    bool finished{false};
};

struct group_report {
    struct fault {
        std::uint64_t count{0};
        std::string first;
    };
    /// By what is broken: "lost", "out of order" and so on, see `judge`.
    std::map<std::string, fault> faults;

    std::uint64_t put{0};
    std::uint64_t delivered{0};  ///< Different records.
    std::uint64_t repeated{0};
    std::uint64_t most_repeated{0};  ///< By one owner of a shard.
    std::uint64_t owners{0};         ///< Epochs under which something was delivered.
    std::uint64_t samples{0};

    [[nodiscard]] std::uint64_t count(const std::string& of) const;
    [[nodiscard]] std::string text() const;
};

class group_check {
public:
    using moment = std::uint64_t;
    using milliseconds = std::chrono::milliseconds;

    /// By then a worker has written what it delivered, unless it is disturbed.
    explicit group_check(milliseconds written_within = std::chrono::seconds{3})
        : written_within_(written_within) {}

    [[nodiscard]] moment now() const noexcept { return lines_; }

    void shard(const std::string& name, const std::vector<std::string>& parents) { parents_[name] = parents; }

    /// A record, before or after its delivery. Numbers grow within a key, in the order of the puts.
    void put(const std::string& shard, const std::string& sequence, const std::string& key, std::uint64_t n);

    /// The next line of the file, without its newline, as it came; the data of a record is its number.
    struct delivery {
        std::string shard;
        std::string worker;
        std::uint64_t epoch{0};
        bool repeated{false};
    };
    std::optional<delivery> line(std::string_view text, milliseconds at = {});

    /// All rows, read after the lines so far were written.
    void sample(const std::vector<shard_sample>& rows);

    /// In this time the worker (empty: any) may have lost shards in another way than by giving them back: so
    /// many records of each of them may be delivered again.
    struct disturbance {
        std::string worker;
        moment from{0};
        moment to{0};
        std::uint64_t repeats{0};
    };
    void disturbed(disturbance what) { disturbances_.push_back(std::move(what)); }

    [[nodiscard]] std::uint64_t delivered() const noexcept { return delivered_; }
    [[nodiscard]] std::uint64_t put_so_far() const noexcept { return put_; }

    /// Of the newest sample.
    [[nodiscard]] const std::map<std::string, shard_sample>& rows() const noexcept { return newest_; }

    /// The last record of the shard that was put there.
    [[nodiscard]] std::optional<decimal> last_of(const std::string& shard) const;

    [[nodiscard]] group_report judge() const;

private:
    struct record {
        std::string key;
        std::uint64_t number{0};
        bool put{false};
        std::optional<moment> first;
        std::uint64_t epoch{0};  // of its latest delivery
        moment latest{0};
    };
    struct repeat {
        std::uint64_t epoch{0};  // that had delivered it before
        moment at{0};            // then
    };
    struct run {  // what was delivered under one epoch
        std::string worker;
        moment begin{0};
        decimal lowest;
        decimal last;
        std::vector<repeat> repeats;
    };
    struct progress {  // of a row, as it was when it changed
        moment at{0};
        std::uint64_t epoch{0};
        std::optional<decimal> checkpoint;
        bool finished{false};
    };

    void fault(const std::string& what, const std::string& where);
    void compare(const shard_sample& before, const shard_sample& after);
    void look_at_parents(const std::vector<shard_sample>& rows);
    [[nodiscard]] milliseconds time_before(moment line) const;
    [[nodiscard]] const disturbance* excuse(const run& of, moment delivered, moment until) const;
    [[nodiscard]] std::uint64_t
    judge_repeats(const std::map<std::uint64_t, run>& runs, std::uint64_t epoch, const std::string& name, group_report&)
        const;
    void judge_records(group_report& report) const;
    void judge_runs(group_report& report) const;
    void judge_rows(group_report& report) const;
    void judge_children(group_report& report) const;

    std::map<std::string, std::vector<std::string>> parents_;
    std::map<std::string, std::map<decimal, record>> records_;  // by shard
    std::map<std::string, std::map<std::uint64_t, run>> runs_;  // by shard and epoch
    std::map<std::string, std::vector<progress>> progress_;     // by shard
    std::map<std::string, shard_sample> newest_;
    std::vector<std::pair<std::string, std::string>>
        begun_too_early_;                                    // child and parent, by the last sample
    std::map<std::string, std::uint64_t> newest_put_;        // by key
    std::map<std::string, std::uint64_t> newest_delivered_;  // by key
    std::vector<disturbance> disturbances_;
    milliseconds written_within_;
    moment lines_{0};
    std::vector<milliseconds> times_;  // of the lines
    std::uint64_t put_{0};
    std::uint64_t delivered_{0};
    std::uint64_t samples_{0};
    std::map<std::string, group_report::fault> faults_;
};

}  // namespace millrace::support
