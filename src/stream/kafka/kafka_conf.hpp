/// Configurations of librdkafka's clients from an address.
///
/// The user's properties pass through by name. Those on which the delivery guarantee rests belong to Millrace
/// and are refused with the reason. Nothing is connected here; functions are pure.
#pragma once

#include "handles.hpp"
#include "kafka_url.hpp"

#include <millrace/error.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace millrace::kafka {

/// What a client is for: properties of the other kind are left out, so that one address serves both.
enum class client_kind : std::uint8_t { producer, consumer };

/// The address's servers and properties, then `own`, which wins. `invalid_config` names the property, the
/// reason and, for an unknown one, the nearest that exists; never a secret.
[[nodiscard]] result<conf_ptr> make_conf(
    const kafka_address& address, client_kind kind, std::span<const kafka_property> own = {}
);

/// What `make_conf` would say, for checks before anything is opened.
[[nodiscard]] result<void> check_properties(const kafka_address& address);

/// Refuses SCRAM with a librdkafka that brokers of Kafka 4 refuse. `version`: as `rd_kafka_version()`.
[[nodiscard]] result<void> check_scram(const kafka_address& address, int version);

/// Why librdkafka makes no client of `conf`: its sentence, with the file that it means.
[[nodiscard]] std::string fault_of_client(const rd_kafka_conf_t& conf, std::string_view why);

}  // namespace millrace::kafka
