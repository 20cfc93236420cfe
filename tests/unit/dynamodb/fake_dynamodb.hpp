/// A DynamoDB table of a simulated world: understands what this program sends and nothing else, counts the
/// requests and what they would cost, and fails as it is told.
///
/// Stricter than AWS: a request that it does not understand throws.
#pragma once

#include "api.hpp"
#include "scheduler.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <boost/json.hpp>

namespace millrace::test {

/// What becomes of one request.
enum class dynamodb_fate : std::uint8_t { normal, throttled, lost_reply, late };

class fake_dynamodb_table {
public:
    using reply = tl::expected<std::string, aws::api_failure>;

    /// Carries out a request; a failure as the client tells it.
    reply serve(const std::string& operation, std::string_view body);

    /// By the rules of AWS: names and values in bytes, a number in half its digits.
    [[nodiscard]] static std::size_t bytes_of(const boost::json::object& item);

    /// By operation, a query also by what it lists ("Query workers"); those that were refused, too.
    std::map<std::string, int> requests;
    double read_units{0};
    double write_units{0};

    std::size_t page_bytes{1 << 20};
    bool returns_items{true};  ///< Of a failed condition.
    std::function<dynamodb_fate(const std::string& operation)> meets = [](const std::string&) {
        return dynamodb_fate::normal;
    };
    std::map<std::pair<std::string, std::string>, boost::json::object> items;  ///< By both parts of the key.

private:
    reply query(const boost::json::object& request);
    reply get(const boost::json::object& request);
    reply change(const std::string& operation, const boost::json::object& request);
};

/// One client of the table. Outcomes come after some milliseconds of the world, or after the time-out.
class fake_dynamodb final : public aws::api {
public:
    fake_dynamodb(sim::scheduler& world, fake_dynamodb_table& table) : world_(world), table_(table) {}

    void send(aws::api_request what, aws::api_done done) override;

private:
    sim::scheduler& world_;
    fake_dynamodb_table& table_;
};

}  // namespace millrace::test
