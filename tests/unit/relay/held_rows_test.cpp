#include "relay/held_rows.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace millrace {
namespace {

std::shared_ptr<row_batch> batch_of(std::int64_t first, int rows) {
    auto batch = std::make_shared<row_batch>();
    for (auto i = 0; i < rows; ++i) {
        outbox_row row;
        row.id = row_id{first + i};
        row.topic = batch->store("topic");
        row.key = batch->store("key " + std::to_string(first + i));
        row.value = batch->store(std::string(100, 'v'));
        row.headers = batch->store(std::vector<record_header>{{batch->store("name"), batch->store("text")}});
        batch->add(row);
    }
    return batch;
}

TEST(HeldRows, PackingSparseBatchesKeepsTheRowsAndGivesTheRestOfTheirMemoryBack) {
    held_rows memory;
    std::vector<held_row> left;
    for (auto b = 0; b < 50; ++b) {
        const auto rows = batch_of(b * 20, 20);
        auto* const batch = memory.adopt(rows);
        std::vector<held_row> all;
        for (const auto& row : rows->rows())
            all.push_back(memory.keep(row, batch));
        for (std::size_t i = 1; i < all.size(); ++i)
            memory.release(all[i]);
        left.push_back(all[0]);
    }
    const auto before = memory.bytes();
    const auto live = memory.live_bytes();
    EXPECT_TRUE(memory.sparse(before / 2));
    std::vector<held_row*> waiting;
    for (auto& row : left)
        waiting.push_back(&row);
    memory.pack(waiting);
    EXPECT_LT(memory.bytes(), before / 10);
    EXPECT_EQ(memory.live_bytes(), live);
    EXPECT_FALSE(memory.sparse(before / 2));
    for (std::size_t b = 0; b < left.size(); ++b) {
        const auto& row = *left[b].row;
        EXPECT_EQ(row.id.value(), static_cast<std::int64_t>(b) * 20);
        EXPECT_EQ(row.topic, "topic");
        EXPECT_EQ(row.key, "key " + std::to_string(b * 20));
        EXPECT_EQ(row.value, std::string(100, 'v'));
        ASSERT_EQ(row.headers.size(), 1U);
        EXPECT_EQ(row.headers[0].name, "name");
        EXPECT_EQ(row.headers[0].value, "text");
    }
    for (const auto& row : left)
        memory.release(row);
    EXPECT_EQ(memory.bytes(), 0U);
    EXPECT_EQ(memory.live_bytes(), 0U);
}

TEST(HeldRows, PackingLeavesRowsOfDenseBatchesWhereTheyAre) {
    held_rows memory;
    const auto rows = batch_of(1, 4);
    auto* const batch = memory.adopt(rows);
    std::vector<held_row> left;
    for (const auto& row : rows->rows())
        left.push_back(memory.keep(row, batch));
    std::vector<held_row*> waiting{&left[0], &left[1]};
    const auto before = memory.bytes();
    memory.pack(waiting);
    EXPECT_EQ(left[0].batch, batch);
    EXPECT_EQ(left[0].row, rows->rows().data());
    EXPECT_EQ(memory.bytes(), before);
}

}  // namespace
}  // namespace millrace
