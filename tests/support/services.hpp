/// The servers that the tests share, one of each kind, started by `./dev test` or by `./dev services start`.
///
/// Whoever uses them makes databases, schemas, topics, streams, tables and groups under names of its own
/// (`unique_name`), and
/// leaves the server as it is: to stop, pause or kill one, take a private one (`private_servers.hpp`).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace millrace::support {

struct shared_services {
    std::string postgres;    ///< `postgresql://…`, the superuser, database postgres.
    std::string kafka;       ///< `HOST:PORT`, plain text.
    std::string kafka_ssl;   ///< TLS; a client certificate is possible.
    std::string kafka_sasl;  ///< SASL without TLS: PLAIN alice/alice-secret, admin/admin-secret (super user);
                             ///< SCRAM bob/bob-secret.

    /// `ca.crt`, `client.crt`, `client.key`; `other-ca.crt` has signed nothing.
    std::filesystem::path tls;

    /// kinesis-local, HTTP/1.1 without TLS. An access key id of 12 digits is an account of its own; any
    /// signature is taken. Streams are made and changed within some 10 ms.
    std::string kinesis_endpoint;
    std::string kinesis_tls_endpoint;  ///< The same streams by TLS with HTTP/2.
    std::filesystem::path kinesis_ca;  ///< Has signed its certificate, of localhost and 127.0.0.1.

    std::string dynamodb_endpoint;  ///< dynalite: no TTL, no item in the reply of a failed condition.

    /// DynamoDB with TTL and the item of a failed condition, STS and IMDSv2. Signatures are not checked until
    /// somebody asks for it: only do so with a private one.
    std::string moto_endpoint;

    /// Apicurio Registry 3.0.9: the base URL of Confluent's API, without authentication. Demands no
    /// compatibility of a subject until it is told so; gives no GUIDs.
    std::string registry;
};

/// From the environment (`MILLRACE_TEST_POSTGRES`, `_KAFKA`, `_KAFKA_SSL`, `_KAFKA_SASL`, `_TLS`, `_KINESIS`,
/// `_KINESIS_TLS`, `_KINESIS_CA`, `_DYNAMODB`, `_MOTO`, `_REGISTRY`), otherwise from `build/services/env`.
/// Throws std::runtime_error when a server is named nowhere: a test that needs one fails.
const shared_services& services();

/// `prefix` with a part that no other test, process or run has: lower-case letters, digits and `_`.
std::string unique_name(std::string_view prefix);

}  // namespace millrace::support
