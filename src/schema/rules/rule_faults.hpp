/// All that is wrong with the rules for topics, for who knows where each of them was written. Pure.
#pragma once

#include <millrace/schemas.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace millrace::schema {

struct rule_fault {
    enum class place { topic, value, key };

    std::size_t rule{0};  ///< From 0.
    place where{place::topic};
    std::string what;  ///< Names the rule, too.
};

/// Every rule that contradicts itself, that does so in its value and its key, or that an earlier one hides.
[[nodiscard]] std::vector<rule_fault> faults_of(std::span<const topic_rule> rules);

}  // namespace millrace::schema
