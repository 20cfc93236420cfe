#ifdef MILLRACE_WITH_AWS

#include "dynamodb_adapters.hpp"

#include "aws_access.hpp"
#include "dynamodb_lease_store.hpp"
#include "dynamodb_url.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace millrace::dynamodb_adapters {

namespace {

constexpr milliseconds request_timeout_max = std::chrono::seconds{2};

result<aws::address> address_of(const url& where) {
    return with_endpoint("dynamodb", parse_dynamodb_url(where.path, where.given));
}

lease_table_name name_of(const aws::address& address, const std::string& shown) {
    return {address.name, address.region, address.endpoint, shown};
}

}  // namespace

result<std::unique_ptr<lease_store>> open_lease_store(
    const url& where, const group_key& group, host& home, nanoseconds lease
) {
    const auto address = address_of(where);
    if (!address) return tl::unexpected(address.error());
    return std::make_unique<dynamodb_lease_store>(
        home,
        open_aws("dynamodb", address->region, address->endpoint, home.log()),
        dynamodb_lease_store_options{
            .where = name_of(*address, where.given),
            .group = group,
            .request_timeout = std::min(request_timeout_max, std::chrono::floor<milliseconds>(lease / 5))}
    );
}

result<std::vector<std::string>> known_groups(const url& state, const std::string& stream) {
    const auto address = address_of(state);
    if (!address) return tl::unexpected(address.error());
    const auto service = open_aws("dynamodb", address->region, address->endpoint, null_log());
    return dynamodb_groups(*service, name_of(*address, state.given), stream);
}

result<std::vector<kept_row>> kept_positions(const url& where, kept_by whom, const std::string& under) {
    const auto address = address_of(where);
    if (!address) return tl::unexpected(address.error());
    const auto service = open_aws("dynamodb", address->region, address->endpoint, null_log());
    return dynamodb_positions(*service, name_of(*address, where.given), whom, under);
}

}  // namespace millrace::dynamodb_adapters

#endif
