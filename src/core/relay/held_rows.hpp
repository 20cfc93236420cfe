/// The memory of the rows that a relay still needs: batches, counted whole until their last row is released.
///
/// A few stuck rows would otherwise keep whole batches alive, so sparse batches can be packed into one. Pure;
/// no thread safety.
#pragma once

#include "port/event_sink.hpp"
#include "port/outbox_source.hpp"

#include <cstddef>
#include <list>
#include <memory>
#include <span>

namespace millrace {

struct held_batch {
    std::shared_ptr<const row_batch> rows;
    std::size_t live{0};
    std::size_t live_bytes{0};
    std::list<held_batch>::iterator self;
};

/// A row in memory. Two words, passed by value.
struct held_row {
    const outbox_row* row{nullptr};
    held_batch* batch{nullptr};

    [[nodiscard]] row_id id() const noexcept { return row->id; }
    [[nodiscard]] std::size_t bytes() const noexcept { return row->bytes(); }
    [[nodiscard]] outgoing_row outgoing() const { return {row, batch->rows}; }
};

class held_rows {
public:
    /// Follow with `keep` for each row that is needed, then with `settle`.
    [[nodiscard]] held_batch* adopt(std::shared_ptr<const row_batch> rows);
    [[nodiscard]] held_row keep(const outbox_row& row, held_batch* batch);
    void settle(held_batch* batch);

    void release(held_row row);
    void clear();

    /// Copies the rows of sparse batches into one new batch and makes them point there.
    void pack(std::span<held_row* const> rows);

    /// Whether packing would free at least `bytes`, so far as the batches can tell.
    [[nodiscard]] bool sparse(std::size_t bytes) const noexcept { return bytes_ >= live_bytes_ + bytes; }

    [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
    [[nodiscard]] std::size_t live_bytes() const noexcept { return live_bytes_; }

private:
    std::list<held_batch> batches_;
    std::size_t bytes_{0};
    std::size_t live_bytes_{0};
};

}  // namespace millrace
