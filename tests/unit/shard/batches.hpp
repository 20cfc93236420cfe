/// Batches of numbered records for the tests of reading and handling.
#pragma once

#include <millrace/record.hpp>

#include <cstdint>
#include <memory>
#include <string>

namespace millrace::testing_shard {

inline position at(std::uint64_t number) {
    return {sequence_number{number}, 0};
}

inline wall_time arrived(std::uint64_t number) {
    return wall_time{milliseconds{static_cast<std::int64_t>(number) * 10}};
}

/// Records with the sequence numbers first..last, each with its number as data.
inline std::shared_ptr<const record_batch> batch(
    std::uint64_t first, std::uint64_t last, std::size_t data_bytes = 0, const std::string& shard = "s"
) {
    auto made = std::make_shared<record_batch>(shard_id{shard});
    for (auto n = first; n <= last; ++n) {
        auto data = std::to_string(n);
        data.resize(std::max(data.size(), data_bytes), '.');
        made->add({.position = at(n), .data = made->store(data), .arrival = arrived(n)});
    }
    return made;
}

}  // namespace millrace::testing_shard
