#include "support/kinesis_fake/fault_plan.hpp"

#include <algorithm>

namespace millrace::kinesis_fake {

drawn_fault fault_plan::draw(const std::string& operation, const std::string& shard) {
    for (auto& rule : rules_) {
        const bool matches = (rule.operation.empty() || rule.operation == operation) &&
                             (rule.shard.empty() || rule.shard == shard);
        if (!matches || below(1'000) >= rule.per_mille) continue;
        const drawn_fault found{rule.what, rule.delay};
        ++drawn_;
        if (rule.times) --*rule.times;
        std::erase_if(rules_, [](const fault_rule& r) { return r.times == 0; });
        return found;
    }
    return {};
}

}  // namespace millrace::kinesis_fake
