/// Real relays on one outbox in PostgreSQL, to Kafka, that can be killed, paused, stopped and started again.
///
/// Relays never end because a server is missing: whoever ends without having been asked to is found by
/// `ended_by_itself`. The thread that starts relays owns the object.
#pragma once

#include "support/process.hpp"
#include "support/temporary_folder.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace millrace::e2e {

/// Where the relays work, and the limits that decide how many events a fault may repeat.
struct relay_fleet_options {
    std::string outbox;  ///< `postgresql://…`
    std::string sink;    ///< `kafka://…`
    int relays{4};
    std::chrono::milliseconds lease{2000};
    std::uint64_t window_rows{2000};
    std::uint64_t client_window_rows{500};
    std::vector<std::string> more;  ///< Further options of `millrace relay`.

    /// What one fault can repeat: whatever was read and is not yet deleted, and what a paused relay's client
    /// still appends after another has taken over.
    [[nodiscard]] std::uint64_t repeats_of_a_fault() const { return window_rows + client_window_rows; }
};

class relay_fleet {
public:
    /// Makes the outbox and starts the relays.
    explicit relay_fleet(relay_fleet_options options);

    [[nodiscard]] std::size_t size() const noexcept { return relays_.size(); }
    [[nodiscard]] support::process& relay(std::size_t index) { return relays_.at(index); }
    [[nodiscard]] const relay_fleet_options& options() const noexcept { return options_; }
    [[nodiscard]] static std::string name(std::size_t index) { return "relay-" + std::to_string(index + 1); }

    /// Kills it and starts it again.
    void kill(std::size_t index);
    /// For longer than its lease.
    void pause(std::size_t index);
    /// SIGTERM and a new start. The exit status; empty when it does not end in time.
    std::optional<int> restart(std::size_t index);

    /// SIGTERM to all. Whether all ended in time by status 0.
    bool stop();

    /// The name of a relay that nobody asked to end.
    std::optional<std::string> ended_by_itself();

    /// `millrace outbox VERB...` on this outbox, past the faults.
    [[nodiscard]] support::command_result outbox(
        const std::string& url, std::vector<std::string> verb_and_options
    ) const;

    [[nodiscard]] std::string log() const { return support::read_file(log_file()); }
    [[nodiscard]] std::filesystem::path log_file() const { return folder_.path() / "log"; }

private:
    [[nodiscard]] support::process launch(std::size_t index) const;

    relay_fleet_options options_;
    support::temporary_folder folder_;
    std::vector<support::process> relays_;
};

/// `millrace outbox init`; throws std::runtime_error with the command's message.
void make_outbox(const std::string& url);

}  // namespace millrace::e2e
