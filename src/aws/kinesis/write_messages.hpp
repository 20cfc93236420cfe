/// The messages that write: records into a stream, and streams and shards themselves. As `messages.hpp`.
#pragma once

#include "kinesis/messages.hpp"

namespace millrace::aws::kinesis {

struct put_entry {
    blob data;
    std::string_view key;            ///< 1 to 256 characters.
    std::string_view explicit_hash;  ///< Decimal; empty: the MD5 of the key.
};
template <class V>
void fields(put_entry& m, V&& v) {
    v("Data", m.data);
    v("PartitionKey", m.key);
    v("ExplicitHashKey", m.explicit_hash);
}

struct put_records {
    static constexpr std::string_view operation = "PutRecords";
    stream_name stream;
    std::vector<put_entry> records;
};
template <class V>
void fields(put_records& m, V&& v) {
    stream_fields(m.stream, v);
    v("Records", m.records);
}

struct put_result {
    std::optional<std::string> sequence;
    std::optional<std::string> shard;
    std::optional<std::string> error_code;
    std::optional<std::string> error_message;
};
template <class V>
void fields(put_result& m, V&& v) {
    v("SequenceNumber", m.sequence);
    v("ShardId", m.shard);
    v("ErrorCode", m.error_code);
    v("ErrorMessage", m.error_message);
}

struct put_records_reply {
    std::int64_t failed{0};
    std::vector<put_result> results;  ///< One for each entry, in order.
};
template <class V>
void fields(put_records_reply& m, V&& v) {
    v("FailedRecordCount", m.failed);
    v("Records", m.results);
}

/// The same reply for who needs to know only what failed.
struct put_failure {
    std::optional<std::string> code;
    std::optional<std::string> message;
};
template <class V>
void fields(put_failure& m, V&& v) {
    v("ErrorCode", m.code);
    v("ErrorMessage", m.message);
}

struct put_failures_reply {
    std::vector<put_failure> results;  ///< One for each entry, in order; without a code, it was put.
};
template <class V>
void fields(put_failures_reply& m, V&& v) {
    v("Records", m.results);
}

struct create_stream {
    static constexpr std::string_view operation = "CreateStream";
    std::string name;
    std::int64_t shards{1};
};
template <class V>
void fields(create_stream& m, V&& v) {
    v("StreamName", m.name);
    v("ShardCount", m.shards);
}

struct delete_stream {
    static constexpr std::string_view operation = "DeleteStream";
    stream_name stream;
};
template <class V>
void fields(delete_stream& m, V&& v) {
    stream_fields(m.stream, v);
}

struct split_shard {
    static constexpr std::string_view operation = "SplitShard";
    stream_name stream;
    std::string shard;
    std::string new_starting_hash;
};
template <class V>
void fields(split_shard& m, V&& v) {
    stream_fields(m.stream, v);
    v("ShardToSplit", m.shard);
    v("NewStartingHashKey", m.new_starting_hash);
}

struct merge_shards {
    static constexpr std::string_view operation = "MergeShards";
    stream_name stream;
    std::string shard;
    std::string adjacent;
};
template <class V>
void fields(merge_shards& m, V&& v) {
    stream_fields(m.stream, v);
    v("ShardToMerge", m.shard);
    v("AdjacentShardToMerge", m.adjacent);
}

struct update_shard_count {
    static constexpr std::string_view operation = "UpdateShardCount";
    stream_name stream;
    std::int64_t target{1};
    std::string scaling{"UNIFORM_SCALING"};
};
template <class V>
void fields(update_shard_count& m, V&& v) {
    stream_fields(m.stream, v);
    v("TargetShardCount", m.target);
    v("ScalingType", m.scaling);
}

struct increase_retention {
    static constexpr std::string_view operation = "IncreaseStreamRetentionPeriod";
    stream_name stream;
    std::int64_t hours{24};
};
template <class V>
void fields(increase_retention& m, V&& v) {
    stream_fields(m.stream, v);
    v("RetentionPeriodHours", m.hours);
}

/// What has no content: the replies of those above but PutRecords.
struct empty_reply {};
template <class V>
void fields(empty_reply&, V&&) {}

}  // namespace millrace::aws::kinesis
