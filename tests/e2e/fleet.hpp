/// Real relays and workers on one outbox and one stream, that can be killed, paused, stopped and started
/// again.
#pragma once

#include "support/delivery_check.hpp"
#include "support/line_follower.hpp"
#include "support/process.hpp"
#include "support/temporary_folder.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::e2e {

/// Limits that decide how many events a fault may repeat.
struct fleet_options {
    int relays{2};
    int workers{3};
    std::chrono::milliseconds lease{2000};
    std::uint64_t checkpoint_records{200};
    std::uint64_t batch_records{100};
    std::uint64_t client_window_rows{500};
};

class fleet {
public:
    enum class role : std::uint8_t { relay, worker };

    struct member {
        role what;
        std::string name;
        support::process process;
    };

    /// Creates the outbox and a stream `orders` of four shards.
    explicit fleet(fleet_options options);

    /// Other options for what is started from now on.
    void use(const fleet_options& options) { options_ = options; }

    void start();
    void start_again(std::size_t index);

    /// A new worker id (relays have none), as after a move to another machine.
    void start_renamed(std::size_t index);

    /// One more worker under this id, not a member.
    [[nodiscard]] support::process another(const std::string& worker) const {
        return launch(role::worker, worker);
    }

    [[nodiscard]] std::vector<member>& members() noexcept { return members_; }
    [[nodiscard]] const fleet_options& options() const noexcept { return options_; }
    [[nodiscard]] std::filesystem::path database() const { return folder_.path() / "shop.db"; }
    [[nodiscard]] std::string log() const { return support::read_file(folder_.path() / "log"); }

    /// `stream split` and the like on the stream; the command's result.
    support::command_result stream(const std::string& verb, std::vector<std::string> arguments) const;
    [[nodiscard]] support::command_result group_status() const;

    /// Reads what was delivered since the last call.
    void follow() {
        deliveries_.read([this](const std::string& line) { check_.delivered(line); });
    }
    [[nodiscard]] support::delivery_check& check() noexcept { return check_; }

private:
    [[nodiscard]] support::process launch(role what, const std::string& name) const;

    fleet_options options_;
    support::temporary_folder folder_;
    std::vector<member> members_;
    std::uint64_t renamed_{0};
    support::line_follower deliveries_;
    support::delivery_check check_;
};

}  // namespace millrace::e2e
