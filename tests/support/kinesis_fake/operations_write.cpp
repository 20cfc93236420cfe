#include "support/kinesis_fake/operation_members.hpp"
#include "support/kinesis_fake/operations.hpp"

#include <utility>

namespace millrace::kinesis_fake {

namespace {

constexpr std::size_t key_bytes_max = 256;

}  // namespace

answer<value> operations::create_stream(const members& in, fault) {
    const auto shards = in.number("ShardCount").value_or(0);
    if (shards < 1) return invalid("ShardCount must be at least 1");
    return model_.create(in.stream(), static_cast<std::uint32_t>(shards)).map([] {
        return value{value_map{}};
    });
}

answer<value> operations::delete_stream(const members& in, fault) {
    return model_.remove(in.stream()).map([] { return value{value_map{}}; });
}

answer<value> operations::put_records(const members& in, fault with) {
    const auto* all = in.list("Records");
    if (all == nullptr || all->empty() || all->size() > model_.limits.put_records_max)
        return invalid("Records must have from 1 to 500 members");
    const auto stream = in.stream();
    if (const auto known = model_.find(stream); !known) return tl::unexpected(known.error());
    std::size_t bytes = 0;
    for (const auto& entry : *all) {
        const members one(entry);
        const auto data = one.blob("Data");
        const auto key = one.text("PartitionKey");
        if (!data || !key || key->empty() || key->size() > key_bytes_max)
            return invalid("each record needs Data and a PartitionKey of 1 to 256 bytes");
        if (const auto hash = one.text("ExplicitHashKey"); hash && !is_hash(*hash))
            return tl::unexpected(refusal{"InvalidArgumentException", "Invalid ExplicitHashKey"});
        if (const auto odd = one.unknown({"Data", "PartitionKey", "ExplicitHashKey"}); !odd.empty())
            return invalid("a record has no member " + odd);
        if (data->size() + key->size() > model_.limits.record_bytes_max)
            return invalid("a record is larger than the stream takes");
        bytes += data->size() + key->size();
    }
    if (bytes > model_.limits.put_bytes_max) return invalid("Records are larger than 5 MiB together");
    value_list outcomes;
    std::int64_t failed = 0;
    for (const auto& entry : *all) {
        const members one(entry);
        answer<written> done = tl::unexpected(refusal{"InternalFailure", "Internal service failure."});
        if (with != fault::partial_put || faults_.below(3) != 0)
            done =
                model_.put(stream, *one.text("PartitionKey"), *one.blob("Data"), one.text("ExplicitHashKey"));
        if (done) {
            outcomes.push_back({value_map{
                {"SequenceNumber", text(done->sequence)}, {"ShardId", text(done->shard)}}});
            continue;
        }
        ++failed;
        outcomes.push_back({value_map{
            {"ErrorCode", text(done.error().type)}, {"ErrorMessage", text(done.error().message)}}});
    }
    return value{value_map{
        {"FailedRecordCount", value{failed}},
        {"Records", value{std::move(outcomes)}},
        {"EncryptionType", text("NONE")}}};
}

answer<value> operations::put_record(const members& in, fault) {
    const auto data = in.blob("Data");
    const auto key = in.text("PartitionKey");
    if (!data || !key || key->empty() || key->size() > key_bytes_max ||
        data->size() + key->size() > model_.limits.record_bytes_max)
        return invalid("PutRecord needs Data and a PartitionKey of 1 to 256 bytes, within the limit");
    return model_.put(in.stream(), *key, *data, in.text("ExplicitHashKey")).map([](const written& done) {
        return value{value_map{{"ShardId", text(done.shard)}, {"SequenceNumber", text(done.sequence)}}};
    });
}

answer<value> operations::split_shard(const members& in, fault) {
    const auto at = hash_key::parse(in.text("NewStartingHashKey").value_or(""));
    if (!at) return invalid("NewStartingHashKey is no hash key");
    return model_.split(in.stream(), in.text("ShardToSplit").value_or(""), *at).map([] {
        return value{value_map{}};
    });
}

answer<value> operations::merge_shards(const members& in, fault) {
    return model_
        .merge(
            in.stream(), in.text("ShardToMerge").value_or(""), in.text("AdjacentShardToMerge").value_or("")
        )
        .map([] { return value{value_map{}}; });
}

answer<value> operations::update_shard_count(const members& in, fault) {
    const auto target = in.number("TargetShardCount").value_or(0);
    if (target < 1 || in.text("ScalingType") != "UNIFORM_SCALING")
        return invalid("UpdateShardCount needs a TargetShardCount and UNIFORM_SCALING");
    return model_.resize(in.stream(), static_cast<std::uint32_t>(target)).map([&] {
        return value{value_map{{"StreamName", text(in.stream())}, {"TargetShardCount", value{target}}}};
    });
}

}  // namespace millrace::kinesis_fake
