/// The servers that the tests share: one PostgreSQL and one Kafka, started by `./dev test` or by
/// `./dev services start`.
///
/// Whoever uses them makes databases, schemas, topics and groups under names of its own (`unique_name`), and
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
};

/// From the environment (`MILLRACE_TEST_POSTGRES`, `_KAFKA`, `_KAFKA_SSL`, `_KAFKA_SASL`, `_TLS`), otherwise
/// from `build/services/env`. Throws std::runtime_error when a server is named nowhere: a test that needs one
/// fails.
const shared_services& services();

/// `prefix` with a part that no other test, process or run has: lower-case letters, digits and `_`.
std::string unique_name(std::string_view prefix);

}  // namespace millrace::support
