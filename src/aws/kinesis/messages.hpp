/// The messages of the Kinesis API that are used here, and the names of their fields on the wire.
///
/// Each message is described once, by `fields`; the codecs read and write both CBOR and JSON from that. A
/// string that is empty and an optional without a value are not written; what is missing or null leaves the
/// member as it was. Plain values; views point into what they were read from, or into what is to be sent.
#pragma once

#include <millrace/time.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::aws::kinesis {

/// Bytes: as they are in CBOR, base64 in JSON.
struct blob {
    std::string_view bytes;
};

/// The stream of a request: by name or by ARN, one of the two.
struct stream_name {
    std::string name;
    std::string arn;
};

/// Both are members of the request itself.
template <class V>
void stream_fields(stream_name& m, V&& v) {
    v("StreamName", m.name);
    v("StreamARN", m.arn);
}

struct hash_key_range {
    std::string from;
    std::string to;
};
template <class V>
void fields(hash_key_range& m, V&& v) {
    v("StartingHashKey", m.from);
    v("EndingHashKey", m.to);
}

struct sequence_range {
    std::string starting;
    std::optional<std::string> ending;  ///< Of a closed shard.
};
template <class V>
void fields(sequence_range& m, V&& v) {
    v("StartingSequenceNumber", m.starting);
    v("EndingSequenceNumber", m.ending);
}

struct shard {
    std::string id;
    std::optional<std::string> parent;
    std::optional<std::string> adjacent_parent;
    hash_key_range hashes;
    sequence_range sequences;
};
template <class V>
void fields(shard& m, V&& v) {
    v("ShardId", m.id);
    v("ParentShardId", m.parent);
    v("AdjacentParentShardId", m.adjacent_parent);
    v("HashKeyRange", m.hashes);
    v("SequenceNumberRange", m.sequences);
}

/// A later page is asked for by its token alone.
struct list_shards {
    static constexpr std::string_view operation = "ListShards";
    stream_name stream;
    std::string next_token;
    std::optional<std::int64_t> max_results;
};
template <class V>
void fields(list_shards& m, V&& v) {
    stream_fields(m.stream, v);
    v("NextToken", m.next_token);
    v("MaxResults", m.max_results);
}

struct list_shards_reply {
    std::vector<shard> shards;
    std::optional<std::string> next_token;
};
template <class V>
void fields(list_shards_reply& m, V&& v) {
    v("Shards", m.shards);
    v("NextToken", m.next_token);
}

struct describe_stream_summary {
    static constexpr std::string_view operation = "DescribeStreamSummary";
    stream_name stream;
};
template <class V>
void fields(describe_stream_summary& m, V&& v) {
    stream_fields(m.stream, v);
}

struct stream_summary {
    std::string name;
    std::string arn;
    std::string status;  ///< CREATING, DELETING, ACTIVE, UPDATING
    std::optional<wall_time> created;
    std::optional<std::int64_t> retention_hours;
    std::optional<std::int64_t> open_shards;
};
template <class V>
void fields(stream_summary& m, V&& v) {
    v("StreamName", m.name);
    v("StreamARN", m.arn);
    v("StreamStatus", m.status);
    v("StreamCreationTimestamp", m.created);
    v("RetentionPeriodHours", m.retention_hours);
    v("OpenShardCount", m.open_shards);
}

struct describe_stream_summary_reply {
    stream_summary summary;
};
template <class V>
void fields(describe_stream_summary_reply& m, V&& v) {
    v("StreamDescriptionSummary", m.summary);
}

struct get_shard_iterator {
    static constexpr std::string_view operation = "GetShardIterator";
    stream_name stream;
    std::string shard;
    std::string type;      ///< TRIM_HORIZON, LATEST, AT_TIMESTAMP, AT_SEQUENCE_NUMBER, AFTER_SEQUENCE_NUMBER
    std::string sequence;  ///< For the last two.
    std::optional<wall_time> at;
};
template <class V>
void fields(get_shard_iterator& m, V&& v) {
    stream_fields(m.stream, v);
    v("ShardId", m.shard);
    v("ShardIteratorType", m.type);
    v("StartingSequenceNumber", m.sequence);
    v("Timestamp", m.at);
}

struct get_shard_iterator_reply {
    std::string iterator;
};
template <class V>
void fields(get_shard_iterator_reply& m, V&& v) {
    v("ShardIterator", m.iterator);
}

struct get_records {
    static constexpr std::string_view operation = "GetRecords";
    std::string iterator;
    std::int64_t limit{10'000};
    std::string stream_arn;  ///< Where the stream is named so: for policies on the stream.
};
template <class V>
void fields(get_records& m, V&& v) {
    v("ShardIterator", m.iterator);
    v("Limit", m.limit);
    v("StreamARN", m.stream_arn);
}

/// One record of a reply of GetRecords.
struct stored_record {
    blob data;
    std::string_view key;
    std::string_view sequence;
    std::optional<wall_time> arrival;
};
template <class V>
void fields(stored_record& m, V&& v) {
    v("Data", m.data);
    v("PartitionKey", m.key);
    v("SequenceNumber", m.sequence);
    v("ApproximateArrivalTimestamp", m.arrival);
}

struct child_shard {
    std::string id;
    std::vector<std::string> parents;
    hash_key_range hashes;
};
template <class V>
void fields(child_shard& m, V&& v) {
    v("ShardId", m.id);
    v("ParentShards", m.parents);
    v("HashKeyRange", m.hashes);
}

/// `Records` is what the records are read into or written from.
template <class Records>
struct get_records_reply_with {
    Records records;
    std::optional<std::string> next_iterator;  ///< Absent at the end of a shard.
    std::optional<std::int64_t> millis_behind;
    std::vector<child_shard> children;
};
template <class Records, class V>
void fields(get_records_reply_with<Records>& m, V&& v) {
    v("Records", m.records);
    v("NextShardIterator", m.next_iterator);
    v("MillisBehindLatest", m.millis_behind);
    v("ChildShards", m.children);
}

}  // namespace millrace::aws::kinesis
