#include "relay/held_rows.hpp"

#include "assert.hpp"

#include <utility>
#include <vector>

namespace millrace {

namespace {

[[nodiscard]] bool is_sparse(const held_batch& batch) {
    return batch.live_bytes < batch.rows->bytes() / 2;
}

outbox_row copy_into(row_batch& target, const outbox_row& from) {
    auto row = from;
    row.topic = target.store(from.topic);
    if (from.key) row.key = target.store(*from.key);
    if (from.value) row.value = target.store(*from.value);
    row.malformed = target.store(from.malformed);
    std::vector<record_header> headers(from.headers.begin(), from.headers.end());
    for (auto& header : headers) {
        header.name = target.store(header.name);
        if (header.value) header.value = target.store(*header.value);
    }
    row.headers = target.store(std::move(headers));
    return row;
}

}  // namespace

held_batch* held_rows::adopt(std::shared_ptr<const row_batch> rows) {
    MILLRACE_ASSERT(rows != nullptr);
    bytes_ += rows->bytes();
    auto& batch = batches_.emplace_back();
    batch.rows = std::move(rows);
    batch.self = std::prev(batches_.end());
    return &batch;
}

held_row held_rows::keep(const outbox_row& row, held_batch* batch) {
    ++batch->live;
    batch->live_bytes += row.bytes();
    live_bytes_ += row.bytes();
    return {&row, batch};
}

void held_rows::settle(held_batch* batch) {
    if (batch->live > 0) return;
    bytes_ -= batch->rows->bytes();
    batches_.erase(batch->self);
}

void held_rows::release(held_row row) {
    const auto bytes = row.bytes();
    --row.batch->live;
    row.batch->live_bytes -= bytes;
    live_bytes_ -= bytes;
    settle(row.batch);
}

void held_rows::clear() {
    batches_.clear();
    bytes_ = 0;
    live_bytes_ = 0;
}

void held_rows::pack(std::span<held_row* const> rows) {
    auto target = std::make_shared<row_batch>();
    target->reserve(rows.size());  // rows are pointed at: they must not move
    std::vector<held_row*> moved;
    for (auto* const row : rows) {
        if (!is_sparse(*row->batch)) continue;
        target->add(copy_into(*target, *row->row));
        moved.push_back(row);
    }
    if (moved.empty()) return;
    auto* const batch = adopt(target);
    for (std::size_t i = 0; i < moved.size(); ++i) {
        const auto old = *moved[i];
        *moved[i] = keep(target->rows()[i], batch);
        release(old);
    }
}

}  // namespace millrace
