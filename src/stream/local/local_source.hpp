/// Reads one stream of a local file: `record_source` on a thread with a connection of its own.
///
/// Lives on its host and is only touched there. Completions after its end are `cancelled`.
#pragma once

#include "local_append.hpp"
#include "port/record_source.hpp"

#include <millrace/error.hpp>
#include <millrace/time.hpp>

#include <functional>
#include <memory>
#include <string>

namespace millrace {

struct local_source_options {
    /// How long a request waits for a lock. Reads seldom do; a listing waits so long for a write in progress
    /// before it rounds its moment down, and holds up the reads behind it.
    milliseconds busy_timeout{50};
    milliseconds watch_max{10};  ///< How late `watch` may tell of new records, 1 to 10 ms.
    local_clock clock{system_wall_time};
};

class local_source final : public record_source {
public:
    /// The file is opened for the first request, and anew when it was replaced. A file that this process may
    /// not write is opened for reading only.
    local_source(host& home, std::string file, std::string stream, local_source_options options = {});
    ~local_source() override;

    void list_shards(completion<stream_listing> done) override;
    void open(shard_id shard, start_position start, completion<read_cursor> done) override;
    void read(shard_id shard, read_cursor cursor, read_limits limits, completion<read_reply> done) override;
    void watch(std::function<void()> changed) override;

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace millrace
