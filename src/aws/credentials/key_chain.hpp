/// The keys of this process by AWS's chain of places, renewed in time.
///
/// Looks, in this order, into the environment, a web identity, the shared files, a container's agent, and the
/// instance's metadata service (`key_plan.hpp`), and keeps what it found fresh (`key_refresh.hpp`). It has
/// one thread, on which files are read and others are asked; nothing is looked for before the first `get`.
/// All functions are thread-safe. One object serves any number of clients.
#pragma once

#include "credentials/environment.hpp"
#include "credentials/fetch_keys.hpp"
#include "credentials/key_refresh.hpp"
#include "keys.hpp"

#include <millrace/error.hpp>
#include <millrace/log.hpp>

#include <functional>
#include <memory>
#include <string>

namespace millrace::aws {

struct key_chain_options {
    std::string region;  ///< Of the service that the keys are for; STS is asked there. Empty: as configured.
    environment variables{process_environment()};
    fetch_options fetching;
    key_refresh_options refreshing;
    std::string ca_file;  ///< As in `client_options`; for STS and agents by HTTPS.
};

class key_chain final : public key_source {
public:
    /// The log must outlive this object.
    explicit key_chain(key_chain_options options = {}, log_sink& log = null_log());

    /// Completes who waits with `cancelled`; does not wait for the network or a program.
    ~key_chain() override;
    key_chain(const key_chain&) = delete;
    key_chain& operator=(const key_chain&) = delete;

    /// Errors: `invalid_config` where the set-up contradicts itself, `permission_denied` where there are no
    /// keys or they are refused, `unavailable` where who has them does not answer.
    void get(std::function<void(result<aws_keys>)> done) override;
    void refused(const aws_keys& which) override;

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace millrace::aws
