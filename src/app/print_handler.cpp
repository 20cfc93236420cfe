#include "print_handler.hpp"

#include "record_lines.hpp"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

namespace millrace::app {

namespace {

constexpr std::size_t write_bytes = 64 * 1024;
constexpr std::chrono::milliseconds wait_slice{50};

result<void> gone(int code) {
    return fail(
        errc::unavailable,
        fmt::format(
            "standard output cannot be written: {}; what was not printed is not acknowledged",
            std::strerror(code)
        )
    );
}

}  // namespace

result<void> line_output::wait_for_room(const std::stop_token& stop, std::chrono::milliseconds& stalled)
    const {
    if (out_.wait(wait_slice)) {
        stalled = std::chrono::milliseconds{0};
        return {};
    }
    if (stop.stop_requested()) stalled += wait_slice;
    if (stalled < stall_limit) return {};
    return fail(errc::cancelled, "standard output does not take any more and the consumer is to stop");
}

result<void> line_output::write(
    std::string_view lines, const std::stop_token& stop, const std::function<bool()>& may_write
) {
    const std::lock_guard lock(turn_);
    if (broken_) return tl::unexpected(*broken_);
    std::chrono::milliseconds stalled{0};
    bool begun = false;
    while (!lines.empty()) {
        if (!begun && !may_write()) {
            return fail(errc::not_owner, "the lease ended before the records were printed");
        }
        const ssize_t n = out_.write(lines);
        if (n >= 0) {
            lines.remove_prefix(static_cast<std::size_t>(n));
            begun = begun || n > 0;
            continue;
        }
        if (errno == EINTR) continue;
        result<void> room = errno == EAGAIN ? wait_for_room(stop, stalled) : gone(errno);
        if (room) continue;
        if (begun || room.error().code == errc::unavailable) broken_ = room.error();
        return room;
    }
    return {};
}

print_handler::print_handler(
    int fd, std::string stream, std::string worker, std::function<void(error)> output_gone
)
    : output_(fd),
      stream_(std::move(stream)),
      worker_(std::move(worker)),
      output_gone_(std::move(output_gone)) {}

result<handled> print_handler::handle(const std::shared_ptr<const record_batch>& batch, const delivery& how) {
    thread_local std::string buffer;
    buffer.clear();
    record_lines lines(stream_, batch->shard(), worker_, how.epoch);
    const std::span<const record> records = batch->records();
    for (std::size_t i = 0; i < records.size(); ++i) {
        lines.append(buffer, records[i]);
        if (buffer.size() < write_bytes && i + 1 < records.size()) continue;
        if (const auto written = output_.write(buffer, how.stop, how.still_owner); !written) {
            if (written.error().code == errc::unavailable) {
                std::call_once(reported_, [&] { output_gone_(written.error()); });
                wait_for_the_end(how.stop);
            }
            return tl::unexpected(written.error());
        }
        how.acknowledge.up_to(i);
        buffer.clear();
    }
    // A record of many megabytes must not stay in memory for ever.
    if (buffer.capacity() > 4 * write_bytes) buffer = {};
    return handled::all;
}

void print_handler::wait_for_the_end(const std::stop_token& stop) {
    std::unique_lock lock(ending_);
    ended_.wait(lock, stop, [] { return false; });
}

}  // namespace millrace::app
