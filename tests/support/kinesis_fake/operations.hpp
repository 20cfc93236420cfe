/// The operations of the Kinesis API on a model: a decoded request in, a reply to be encoded out.
///
/// Checks requests member by member, refuses members that it does not know, and applies those faults that are
/// no matter of the transport. Not thread-safe.
#pragma once

#include "support/kinesis_fake/fault_plan.hpp"
#include "support/kinesis_fake/stream_model.hpp"
#include "support/kinesis_fake/wire.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace millrace::kinesis_fake {

struct operation_reply {
    answer<value> body;
    drawn_fault with;  ///< What is left to the transport.
};

/// How often an operation was asked for, and for which shard (empty where there is none).
using request_counts = std::map<std::pair<std::string, std::string>, std::uint64_t>;

class operations {
public:
    operations(stream_model& model, fault_plan& faults) : model_(model), faults_(faults) {}

    /// `operation`: without the prefix of the target.
    [[nodiscard]] operation_reply call(const std::string& operation, const value& request);

    [[nodiscard]] const request_counts& counts() const noexcept { return counts_; }

private:
    class members;
    using handler = answer<value> (operations::*)(const members&, fault);

    [[nodiscard]] std::string shard_of(const std::string& operation, const value& request) const;
    [[nodiscard]] answer<value> carry_out(const std::string& operation, const value& request, fault with);

    answer<value> create_stream(const members& in, fault);
    answer<value> delete_stream(const members& in, fault);
    answer<value> describe(const members& in, fault);
    answer<value> list_shards(const members& in, fault);
    answer<value> get_iterator(const members& in, fault);
    answer<value> get_records(const members& in, fault with);
    answer<value> put_records(const members& in, fault with);
    answer<value> put_record(const members& in, fault);
    answer<value> split_shard(const members& in, fault);
    answer<value> merge_shards(const members& in, fault);
    answer<value> update_shard_count(const members& in, fault);

    stream_model& model_;
    fault_plan& faults_;
    request_counts counts_;
};

/// What AWS says for a refusal of this kind; nothing when it is none.
[[nodiscard]] std::optional<refusal> refusal_of(fault what, const std::string& operation);

}  // namespace millrace::kinesis_fake
