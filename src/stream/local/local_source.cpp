#include "local_source.hpp"

#include "db_thread.hpp"
#include "local_read.hpp"
#include "local_schema.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace millrace {

namespace {

sqlite::db_thread_options thread_options(const local_source_options& options) {
    sqlite::db_thread_options thread;
    thread.watch_max = std::clamp(options.watch_max, milliseconds{1}, milliseconds{10});
    thread.watch_min = std::min(thread.watch_min, thread.watch_max);
    return thread;
}

}  // namespace

struct local_source::impl {
    impl(host& home, const std::string& file, std::string name, const local_source_options& options)
        : stream(std::move(name)),
          clock(options.clock),
          thread(
              home,
              [file, wait = options.busy_timeout] {
                  return local::open_streams(file, sqlite::open_mode::to_read, wait);
              },
              thread_options(options)
          ) {}

    /// For requests about one shard: `job` runs with the open file, so what keeps the file from being opened
    /// is told apart from what `job` found in it.
    template <class T, class F>
    void of_shard(F job, completion<T> done) {
        auto opened = std::make_shared<bool>(false);
        thread.template run<T>(
            [opened, job = std::move(job)](sqlite::database& db) {
                *opened = true;
                return job(db);
            },
            [opened, done = std::move(done)](result<T> outcome) {
                if (!outcome && !*opened) outcome = tl::unexpected(local::not_there_now(outcome.error()));
                done(std::move(outcome));
            }
        );
    }

    const std::string stream;
    const local_clock clock;
    sqlite::db_thread thread;  // the last one: its jobs use the others
};

local_source::local_source(host& home, std::string file, std::string stream, local_source_options options)
    : impl_(std::make_unique<impl>(home, file, std::move(stream), options)) {}

local_source::~local_source() = default;

void local_source::list_shards(completion<stream_listing> done) {
    impl_->thread.run<stream_listing>(
        [me = impl_.get()](sqlite::database& db) { return local::list_stream(db, me->stream, me->clock); },
        std::move(done)
    );
}

void local_source::open(shard_id shard, start_position start, completion<read_cursor> done) {
    impl_->of_shard<read_cursor>(
        [me = impl_.get(), shard = std::move(shard), start](sqlite::database& db) {
            return local::open_cursor(db, me->stream, shard, start);
        },
        std::move(done)
    );
}

void local_source::read(shard_id shard, read_cursor cursor, read_limits limits, completion<read_reply> done) {
    impl_->of_shard<read_reply>(
        [me = impl_.get(), shard = std::move(shard), cursor = std::move(cursor), limits](sqlite::database& db
        ) { return local::read_records(db, me->stream, shard, cursor, limits); },
        std::move(done)
    );
}

void local_source::watch(std::function<void()> changed) {
    impl_->thread.watch(std::move(changed));
}

}  // namespace millrace
