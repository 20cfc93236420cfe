/// Records read from a stream, in batches that own all their bytes.
#pragma once

#include <millrace/names.hpp>
#include <millrace/position.hpp>
#include <millrace/time.hpp>

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

/// A header of a record; views into the batch.
struct record_header {
    std::string_view name;
    std::optional<std::string_view> value;

    bool operator==(const record_header&) const = default;
};

/// One item of a shard. All views point into the batch that holds the record.
struct record {
    millrace::position position;
    std::optional<std::string_view> key;
    std::optional<std::string_view> data;  ///< Absent: a tombstone.
    std::span<const record_header> headers;
    wall_time arrival;
};

/// Records of one shard in stream order, with the memory that they point into.
///
/// Filled by one thread, then shared read-only (`shared_ptr<const record_batch>`): a handler that
/// acknowledges later keeps the pointer as long as it needs the bytes. Memory is counted against the byte
/// budget until the last pointer is gone.
class record_batch {
public:
    explicit record_batch(shard_id shard) : shard_(std::move(shard)) {}
    record_batch(const record_batch&) = delete;
    record_batch& operator=(const record_batch&) = delete;
    ~record_batch() = default;

    [[nodiscard]] const shard_id& shard() const noexcept { return shard_; }
    [[nodiscard]] std::span<const record> records() const noexcept { return records_; }

    /// Bytes of keys, data and headers, and the bookkeeping of each record.
    [[nodiscard]] std::size_t bytes() const noexcept { return bytes_ + records_.size() * sizeof(record); }

    /// Appends a record whose views were made by `store`. Positions must grow.
    void add(const record& r) { records_.push_back(r); }

    /// Copies bytes into the batch; the view stays valid for the life of the batch.
    [[nodiscard]] std::string_view store(std::string_view bytes);
    [[nodiscard]] std::span<const record_header> store(std::vector<record_header> headers);

    /// As `store`, without a copy: the batch takes the bytes themselves.
    [[nodiscard]] std::string_view adopt(std::string bytes);

    void reserve(std::size_t records) { records_.reserve(records); }

    /// Keeps another batch alive, so that its records may be added here without copying their bytes.
    void share(std::shared_ptr<const record_batch> other) { shared_.push_back(std::move(other)); }

private:
    static constexpr std::size_t block_bytes_min = 1024;  ///< Blocks grow: a batch of one record stays small.
    static constexpr std::size_t block_bytes_max = 64 * 1024;

    shard_id shard_;
    std::vector<record> records_;
    std::vector<std::unique_ptr<char[]>> blocks_;
    char* block_end_{nullptr};
    std::size_t block_left_{0};
    std::size_t bytes_{0};
    std::deque<std::vector<record_header>> headers_;
    std::vector<std::shared_ptr<const void>> shared_;  // what else holds bytes
};

}  // namespace millrace
