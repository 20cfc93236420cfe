/// Notices that a stream was restored from a copy older than what the group knows: a shard is finished and
/// yet listed as open.
///
/// One listing may be stale, so it takes two to believe it. Thread contract: none; one owner.
#pragma once

#include "shard/lineage.hpp"

#include <millrace/error.hpp>
#include <millrace/names.hpp>
#include <millrace/time.hpp>

#include <map>
#include <optional>

namespace millrace {

class restored_stream {
public:
    /// What the rows and the complete listing that was asked for at `listed` say. True: another listing
    /// should come soon, to confirm it.
    [[nodiscard]] bool observe(const lineage& traced, mono_time listed);

    /// What is wrong and what to do.
    [[nodiscard]] std::optional<error> found() const;

    /// The same when it is new, and again every minute while it lasts.
    [[nodiscard]] std::optional<error> news();

private:
    std::map<shard_id, mono_time> open_again_;  // and which listing showed it first
    mono_time listed_{mono_time::min()};
    std::optional<mono_time> told_;
};

}  // namespace millrace
