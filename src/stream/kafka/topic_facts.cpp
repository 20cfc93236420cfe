#include "topic_facts.hpp"

#include "record_size.hpp"

#include <algorithm>

#include <fmt/core.h>

namespace millrace::kafka {

void topic_facts::renew(const topic_facts& seen) {
    partitions = seen.trouble ? partitions : seen.partitions;
    trouble = seen.trouble;
    unwell.clear();
    for (const auto partition : seen.seen_unwell)
        if (std::find(seen_unwell.begin(), seen_unwell.end(), partition) != seen_unwell.end())
            unwell.push_back(partition);
    seen_unwell = seen.seen_unwell;
    if (!seen.described) return;
    described = true;
    compacted = seen.compacted;
    row_bytes_max = seen.row_bytes_max;
    batch_bytes_max = seen.batch_bytes_max;
}

void topic_facts::refused(std::size_t bytes, bool alone) noexcept {
    const auto below = bytes > 0 ? bytes - 1 : 0;
    row_bytes_max = std::min(row_bytes_max, below);
    batch_bytes_max = std::min(batch_bytes_max, alone ? below : bytes / 2);
}

void topic_facts::accepted(std::size_t bytes) noexcept {
    row_bytes_max = std::max(row_bytes_max, bytes);
    batch_bytes_max = std::max(batch_bytes_max, bytes);
}

std::int32_t place_of(
    const outbox_row& row, const topic_facts& topic, const partitioner& by, std::uint32_t seed
) {
    auto place = by.partition_of(row, topic.partitions, seed);
    if (topic.unwell.empty() || !by.is_free(row)) return place;
    for (std::int32_t i = 1; i < topic.partitions && topic.is_unwell(place); ++i)
        place = by.partition_of(row, topic.partitions, ++seed);
    return place;
}

error unwell_error(std::string_view topic, std::int32_t partition) {
    return {
        errc::unavailable,
        retry_advice::after_delay,
        false,
        fmt::format(
            "topic \"{}\": partition {} has no leader, or fewer replicas in sync than its "
            "min.insync.replicas; its rows wait and are tried again; see whether its brokers are up",
            topic,
            partition
        )};
}

std::optional<error> suspicion(
    const topic_facts& topic,
    const outbox_row& row,
    std::size_t client_bytes_max,
    std::size_t extra_header_bytes
) {
    if (topic.trouble) return topic.trouble;
    if (topic.denied) return topic.denied;
    const auto refused = [&row](const std::string& why) {
        return error{
            errc::refused_record,
            retry_advice::never,
            false,
            fmt::format("topic \"{}\": {}", row.topic, why)};
    };
    if (topic.compacted && !row.key)
        return refused("it is compacted and takes only records with a key; see its cleanup.policy");
    const auto bytes = batch_header_bytes + record_bytes(row, extra_header_bytes);
    if (bytes > topic.row_bytes_max)
        return refused(fmt::format(
            "a record of {} bytes before compression is above its max.message.bytes of {}; raise that limit "
            "or write smaller events",
            bytes,
            topic.row_bytes_max
        ));
    if (bytes + record_slack > client_bytes_max)
        return refused(fmt::format(
            "a record of {} bytes is above message.max.bytes ({}) of the Kafka URL; larger ones are sent one "
            "by one",
            bytes,
            client_bytes_max
        ));
    return std::nullopt;
}

}  // namespace millrace::kafka
