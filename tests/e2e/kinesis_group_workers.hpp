/// Processes of `millrace consume` on one stream as one group, that append what they print to one file; some
/// as if on a machine of their own. They belong to the thread that starts them.
#pragma once

#include "kinesis_group_watch.hpp"
#include "support/process.hpp"
#include "support/temporary_folder.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace millrace::e2e {

inline const std::string kinesis_group_name = "shipping";

struct worker_options {
    std::string stream;
    std::string state;
    std::chrono::milliseconds lease{3000};
    std::uint64_t checkpoint_records{100};
    std::uint64_t batch_records{100};

    /// What a worker that dies may have delivered beyond the checkpoint of a shard: unwritten, being
    /// written, and in its handler.
    [[nodiscard]] std::uint64_t repeats_of_a_crash() const {
        return 2 * checkpoint_records + 2 * batch_records;
    }
};

enum class machine : std::uint8_t { same, another };

class worker_fleet {
public:
    explicit worker_fleet(worker_options options) : options_(std::move(options)) {}

    struct member {
        std::string name;
        support::process process;
    };

    /// A new member.
    std::size_t start(const std::string& name, machine on = machine::same);
    void start_again(std::size_t index, const std::string& name, machine on);

    /// By SIGKILL; returns when it is gone.
    void kill(std::size_t index);

    /// By SIGTERM, unless it has ended; its status, or nothing when it does not end.
    std::optional<int> stop(std::size_t index);

    [[nodiscard]] std::vector<member>& members() noexcept { return members_; }
    [[nodiscard]] const worker_options& options() const noexcept { return options_; }
    [[nodiscard]] std::filesystem::path deliveries() const { return folder_.path() / "deliveries"; }
    [[nodiscard]] std::string log() const { return support::read_file(folder_.path() / "log"); }

    /// The name of one that nobody asked to end.
    [[nodiscard]] std::optional<std::string> ended_by_itself();

    /// What one more worker prints until all shards are at the tip.
    [[nodiscard]] support::command_result rest() const;

private:
    [[nodiscard]] std::vector<std::string> command(const std::string& name) const;

    worker_options options_;
    support::temporary_folder folder_;
    std::vector<member> members_;
};

}  // namespace millrace::e2e
