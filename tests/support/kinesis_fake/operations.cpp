#include "support/kinesis_fake/operations.hpp"

#include "support/kinesis_fake/operation_members.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace millrace::kinesis_fake {

namespace {

constexpr std::size_t records_of_a_read_max = 10'000;

std::int64_t count(wall_time when) {
    return when.time_since_epoch().count();
}

value describe_shard(const stored_shard& shard) {
    value_map range{
        {"StartingHashKey", text(shard.range.from.to_string())},
        {"EndingHashKey", text(shard.range.to.to_string())}};
    value_map numbers{{"StartingSequenceNumber", text(stream_model::first_sequence(shard))}};
    if (shard.closed) numbers.emplace_back("EndingSequenceNumber", text(stream_model::last_sequence(shard)));
    value_map made{{"ShardId", text(shard.id)}};
    if (shard.parent) made.emplace_back("ParentShardId", text(shard_name(*shard.parent)));
    if (shard.other_parent) made.emplace_back("AdjacentParentShardId", text(shard_name(*shard.other_parent)));
    made.emplace_back("HashKeyRange", value{std::move(range)});
    made.emplace_back("SequenceNumberRange", value{std::move(numbers)});
    return {std::move(made)};
}

value describe_child(const stored_shard& child) {
    value_list parents;
    for (const auto& parent : {child.parent, child.other_parent}) {
        if (parent) parents.push_back(text(shard_name(*parent)));
    }
    value_map range{
        {"StartingHashKey", text(child.range.from.to_string())},
        {"EndingHashKey", text(child.range.to.to_string())}};
    return {value_map{
        {"ShardId", text(child.id)},
        {"ParentShards", value{std::move(parents)}},
        {"HashKeyRange", value{std::move(range)}}}};
}

}  // namespace

std::optional<refusal> refusal_of(fault what, const std::string& operation) {
    switch (what) {
        case fault::throttled:
            if (operation == "ListShards" || operation == "DescribeStreamSummary")
                return refusal{"LimitExceededException", "Rate exceeded for stream"};
            return refusal{"ProvisionedThroughputExceededException", "Rate exceeded for shard"};
        case fault::internal_failure:
            return refusal{"InternalFailure", "", 500};
        case fault::expired_iterator:
            return refusal{"ExpiredIteratorException", "Iterator expired. (a fault of the test)"};
        case fault::expired_token:
            return refusal{"ExpiredNextTokenException", "The NextToken that was given has expired."};
        case fault::kms_throttling:
            return refusal{"KMSThrottlingException", "The request was denied due to throttling."};
        case fault::kms_disabled:
            return refusal{"KMSDisabledException", "The request was rejected because the key is disabled."};
        case fault::access_denied:
            return refusal{
                "AccessDeniedException", "User is not authorized to perform: kinesis:" + operation};
        case fault::expired_credentials:
            return refusal{"ExpiredTokenException", "The security token included in the request is expired"};
        default:
            return std::nullopt;
    }
}

operation_reply operations::call(const std::string& operation, const value& request) {
    const auto shard = shard_of(operation, request);
    ++counts_[{operation, shard}];
    const auto with = faults_.draw(operation, shard);
    if (auto refused = refusal_of(with.what, operation)) return {tl::unexpected(std::move(*refused)), with};
    if (with.what == fault::overloaded) return {value{nullptr}, with};
    auto body = carry_out(operation, request, with.what);
    if (with.what == fault::failure_after_effect)
        return {tl::unexpected(refusal{"InternalFailure", "", 500}), with};
    return {std::move(body), with};
}

std::string operations::shard_of(const std::string& operation, const value& request) const {
    const members in(request);
    if (operation == "GetRecords")
        return model_.shard_of_iterator(in.text("ShardIterator").value_or("")).value_or("");
    return in.text("ShardId").value_or("");
}

answer<value> operations::carry_out(const std::string& operation, const value& request, fault with) {
    struct entry {
        std::vector<std::string_view> members;
        handler run;
    };
    static const std::map<std::string_view, entry> known{
        {"CreateStream", {{"StreamName", "ShardCount"}, &operations::create_stream}},
        {"DeleteStream", {{"StreamName", "StreamARN"}, &operations::delete_stream}},
        {"DescribeStreamSummary", {{"StreamName", "StreamARN"}, &operations::describe}},
        {"ListShards", {{"StreamName", "StreamARN", "NextToken", "MaxResults"}, &operations::list_shards}},
        {"GetShardIterator",
         {{"StreamName", "StreamARN", "ShardId", "ShardIteratorType", "StartingSequenceNumber", "Timestamp"},
          &operations::get_iterator}},
        {"GetRecords", {{"ShardIterator", "Limit", "StreamARN"}, &operations::get_records}},
        {"PutRecords", {{"StreamName", "StreamARN", "Records"}, &operations::put_records}},
        {"PutRecord",
         {{"StreamName", "StreamARN", "Data", "PartitionKey", "ExplicitHashKey"}, &operations::put_record}},
        {"SplitShard",
         {{"StreamName", "StreamARN", "ShardToSplit", "NewStartingHashKey"}, &operations::split_shard}},
        {"MergeShards",
         {{"StreamName", "StreamARN", "ShardToMerge", "AdjacentShardToMerge"}, &operations::merge_shards}},
        {"UpdateShardCount",
         {{"StreamName", "StreamARN", "TargetShardCount", "ScalingType"}, &operations::update_shard_count}}};
    const auto found = known.find(operation);
    if (found == known.end()) return tl::unexpected(refusal{"UnknownOperationException", operation});
    const members in(request);
    if (const auto unknown = in.unknown(found->second.members); !unknown.empty())
        return invalid(fmt::format("{} has no member {}", operation, unknown));
    return (this->*found->second.run)(in, with);
}

answer<value> operations::describe(const members& in, fault) {
    return model_.find(in.stream()).map([](const stored_stream* of) {
        const auto open = std::ranges::count_if(of->shards, [](const stored_shard& s) { return !s.closed; });
        value_map made{
            {"StreamName", text(of->name)},
            {"StreamARN", text(fmt::format("arn:aws:kinesis:us-east-1:{}:stream/{}", account, of->name))},
            {"StreamStatus", text("ACTIVE")},
            {"StreamModeDetails", value{value_map{{"StreamMode", text("PROVISIONED")}}}},
            {"RetentionPeriodHours",
             value{std::int64_t{std::chrono::duration_cast<std::chrono::hours>(of->retention).count()}}},
            {"StreamCreationTimestamp", value{moment{count(of->created)}}},
            {"EnhancedMonitoring",
             value{value_list{value{value_map{{"ShardLevelMetrics", value{value_list{}}}}}}}},
            {"EncryptionType", text("NONE")},
            {"OpenShardCount", value{std::int64_t{open}}},
            {"ConsumerCount", value{std::int64_t{0}}}};
        return value{value_map{{"StreamDescriptionSummary", value{std::move(made)}}}};
    });
}

answer<value> operations::list_shards(const members& in, fault) {
    const auto token = in.text("NextToken");
    if (token && (in.has("StreamName") || in.has("StreamARN"))) {
        return tl::unexpected(refusal{
            "InvalidArgumentException", "NextToken and StreamName cannot be provided together."});
    }
    const auto most = in.number("MaxResults").value_or(1'000);
    if (most < 1 || most > 10'000) return invalid("MaxResults must be from 1 to 10000");
    const auto page = token ? model_.list_on(*token, static_cast<std::size_t>(most))
                            : model_.list(in.stream(), static_cast<std::size_t>(most));
    return page.map([](const shard_page& found) {
        value_list shards;
        for (const auto* shard : found.shards)
            shards.push_back(describe_shard(*shard));
        value_map made{{"Shards", value{std::move(shards)}}};
        if (found.token) made.emplace_back("NextToken", text(*found.token));
        return value{std::move(made)};
    });
}

answer<value> operations::get_iterator(const members& in, fault) {
    const iterator_place where{
        in.text("ShardIteratorType").value_or(""), in.text("StartingSequenceNumber"), in.time("Timestamp")};
    return model_.iterator(in.stream(), in.text("ShardId").value_or(""), where).map([](std::string made) {
        return value{value_map{{"ShardIterator", text(std::move(made))}}};
    });
}

answer<value> operations::get_records(const members& in, fault with) {
    const auto most = in.number("Limit").value_or(std::int64_t{records_of_a_read_max});
    if (most < 1 || most > std::int64_t{records_of_a_read_max})
        return invalid("Limit must be from 1 to 10000");
    const read_quirks quirks{
        with == fault::empty_page, with == fault::short_page, with == fault::childless_end};
    const auto page =
        model_.read(in.text("ShardIterator").value_or(""), static_cast<std::size_t>(most), quirks);
    return page.map([](const read_page& found) {
        value_list records;
        for (const auto* record : found.records) {
            records.push_back({value_map{
                {"SequenceNumber", text(stream_model::sequence_of(*found.shard, *record))},
                {"ApproximateArrivalTimestamp", value{moment{count(record->arrived)}}},
                {"Data", value{blob{record->data}}},
                {"PartitionKey", text(record->key)},
                {"EncryptionType", text("NONE")}}});
        }
        value_map made{
            {"Records", value{std::move(records)}},
            {"MillisBehindLatest", value{std::int64_t{found.behind.count()}}}};
        if (found.next) made.emplace_back("NextShardIterator", text(*found.next));
        if (!found.children.empty()) {
            value_list children;
            for (const auto* child : found.children)
                children.push_back(describe_child(*child));
            made.emplace_back("ChildShards", value{std::move(children)});
        }
        return value{std::move(made)};
    });
}

}  // namespace millrace::kinesis_fake
