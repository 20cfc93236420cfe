/// The address of a Kafka cluster: `kafka://HOST:PORT[,HOST:PORT...][?PROPERTY=VALUE&...]`.
///
/// Properties are librdkafka's own, by name; values are percent-encoded where they hold `&`, `%`, `+` or `#`.
/// Pure; whether a property exists and may be set is for `make_conf` to say.
#pragma once

#include <millrace/error.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace millrace {

struct kafka_property {
    std::string name;
    std::string value;

    bool operator==(const kafka_property&) const = default;
};

struct kafka_address {
    std::string servers;  ///< `HOST:PORT,HOST:PORT`, as librdkafka takes them.
    std::vector<kafka_property> properties;

    bool operator==(const kafka_address&) const = default;

    /// Null when the property is not set.
    [[nodiscard]] const std::string* find(std::string_view property) const noexcept;
};

/// `invalid_argument` says what is wrong, never with a secret.
[[nodiscard]] result<kafka_address> parse_kafka_url(std::string_view url);

/// The URL for logs and messages: values of secrets are `***`, also where the URL is malformed.
[[nodiscard]] std::string shown_kafka_url(std::string_view url);

/// Whether a property's value must not be shown.
[[nodiscard]] bool is_kafka_secret(std::string_view property) noexcept;

}  // namespace millrace
