/// Which requests go wrong, and how: rules that a test writes, drawn by a seeded generator.
///
/// A rule names an operation and a shard, or any; the first that matches and is drawn decides. Not
/// thread-safe.
#pragma once

#include <millrace/time.hpp>

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace millrace::kinesis_fake {

enum class fault : std::uint8_t {
    none,
    // Refusals by the service, without effect.
    throttled,         ///< ProvisionedThroughputExceededException; LimitExceededException of listings
    internal_failure,  ///< 500
    overloaded,        ///< 503 with a page of HTML, as of a proxy
    expired_iterator,
    expired_token,
    kms_throttling,
    kms_disabled,
    access_denied,
    expired_credentials,
    // The request takes effect.
    failure_after_effect,  ///< 500, yet it was done
    cut,                   ///< The connection ends within the body.
    garbled,               ///< Bytes of the body are others, and the checksum fits them.
    wrong_checksum,        ///< Bytes of the body are others than those of the checksum.
    silent,                ///< The connection ends without a reply.
    // Odd, but right.
    empty_page,
    short_page,
    childless_end,
    partial_put,  ///< Some records of a PutRecords fail.
    slow,         ///< Only the delay of the rule.
};

struct fault_rule {
    fault what{fault::none};
    std::string operation{};  ///< "GetRecords"; empty: any
    std::string shard{};      ///< Empty: any
    std::uint32_t per_mille{1'000};
    std::optional<std::uint64_t> times{};  ///< It is forgotten after so many.
    milliseconds delay{0};                 ///< Before the reply.
};

struct drawn_fault {
    fault what{fault::none};
    milliseconds delay{0};
};

class fault_plan {
public:
    explicit fault_plan(std::uint64_t seed = 1) : random_(seed) {}

    void add(fault_rule rule) { rules_.push_back(std::move(rule)); }
    void clear() { rules_.clear(); }

    [[nodiscard]] drawn_fault draw(const std::string& operation, const std::string& shard);

    /// So many requests had a fault.
    [[nodiscard]] std::uint64_t drawn() const noexcept { return drawn_; }

    /// Below `limit`; for whatever else is left to chance.
    [[nodiscard]] std::uint64_t below(std::uint64_t limit) { return random_() % limit; }

private:
    std::mt19937_64 random_;
    std::vector<fault_rule> rules_;
    std::uint64_t drawn_{0};
};

}  // namespace millrace::kinesis_fake
