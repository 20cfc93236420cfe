/// Asks a schema registry over HTTP, at one of several addresses.
///
/// Each question goes to the address that answered last; one that cannot be reached, is out of order or is no
/// registry is followed by the next one, until each was tried once. It does not retry beyond that, nor cache:
/// that is `schema_source`. Outcomes come back on the host; what comes when the client is gone is dropped.
/// Belongs to the host's thread.
#pragma once

#include "http.hpp"
#include "port/host.hpp"
#include "registry_codec.hpp"
#include "registry_failure.hpp"

#include <millrace/error.hpp>
#include <millrace/schemas.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace millrace::registry {

using answer = tl::expected<registered_schema, registry_failure>;

/// The port: a registry, or what a test puts in its place.
class schema_registry {
public:
    virtual ~schema_registry() = default;

    /// `done` is called once, on the host, never inside this call.
    virtual void ask(question what, std::function<void(answer)> done) = 0;
};

struct registry_options : registry_access {
    std::size_t connections_max{8};  ///< And requests under way; further ones wait. 1 to 256.
    std::size_t reply_bytes_max{std::size_t{8} << 20};  ///< Longer replies are no registry's. From 1 KiB.
    reply_limits limits;

    /// `invalid_config` names the option and what is wrong with it, without showing secrets. Reads no file.
    [[nodiscard]] result<void> validate() const;
};

class registry_client final : public schema_registry {
public:
    /// `options` must be valid; those of the transport are taken from `transport` as it is.
    registry_client(host& home, std::unique_ptr<http> transport, registry_options options);
    ~registry_client() override;

    void ask(question what, std::function<void(answer)> done) override;

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

/// With a transport of its own. `invalid_config` also for a file that cannot be read.
[[nodiscard]] result<std::unique_ptr<registry_client>> connect_registry(host& home, registry_options options);

}  // namespace millrace::registry
