#include "local_stream_admin.hpp"

namespace millrace {

result<stream_facts> local_stream_admin::describe() {
    return admin_.describe(stream_).map([](const local_stream_info& info) {
        const auto text = [](const std::optional<std::uint64_t>& number) {
            return number ? std::optional(std::to_string(*number)) : std::nullopt;
        };
        stream_facts facts{info.name, info.created_at, info.retention, {}};
        for (const auto& s : info.shards) {
            facts.shards.push_back(
                {s.shard,
                 s.parents,
                 s.range,
                 s.closed,
                 s.records,
                 s.bytes,
                 text(s.first_sequence),
                 text(s.last_sequence)}
            );
        }
        return facts;
    });
}

}  // namespace millrace
