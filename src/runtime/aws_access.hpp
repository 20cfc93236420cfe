/// Clients of AWS services with the credentials of this process; only in builds that have AWS.
#pragma once

#include "api.hpp"
#include "endpoint_setting.hpp"

#include <millrace/error.hpp>
#include <millrace/log.hpp>

#include <memory>
#include <string>
#include <utility>

namespace millrace {

/// A client of its own, for one adapter object. The credentials (`credentials/key_chain.hpp`) are shared by
/// all clients of the process. `service` as it signs: "kinesis", "dynamodb". An empty endpoint is AWS's own
/// of the region. The log, to which the credentials write, must outlive all clients that are open.
[[nodiscard]] std::unique_ptr<aws::api> open_aws(
    const std::string& service, const std::string& region, const std::string& endpoint, log_sink& log
);

/// The address; where it names no endpoint, with the one that the environment names (`endpoint_setting.hpp`).
template <class Address>
[[nodiscard]] result<Address> with_endpoint(const std::string& service, result<Address> address) {
    if (!address || !address->endpoint.empty()) return address;
    auto configured = aws::configured_endpoint(aws::process_environment(), service);
    if (!configured) return tl::unexpected(std::move(configured.error()));
    address->endpoint = std::move(*configured);
    return address;
}

}  // namespace millrace
