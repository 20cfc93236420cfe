#include "put.hpp"

#include "commands/commands.hpp"
#include "live_line.hpp"
#include "ndjson.hpp"
#include "output.hpp"
#include "record/bytes_text.hpp"
#include "stop_signals.hpp"
#include "units.hpp"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace millrace::app {

namespace {

using kind = option_kind;

bool from_flags(const settings& values) {
    for (const setting& s : values.all()) {
        const std::string_view name = s.option->name;
        const bool of_event = name == "topic" || name == "key" || name == "key-base64" || name == "value" ||
                              name == "value-base64" || name == "null-value" || name == "header" ||
                              name == "partition";
        if (of_event && s.given) return true;
    }
    return false;
}

bool has_topic_option(const settings& values) {
    return find_option(values.command(), "topic") != nullptr;
}

std::size_t bytes_of(const event& e) {
    std::size_t bytes =
        sizeof(event) + e.topic.size() + e.key.value_or("").size() + e.value.value_or("").size();
    for (const header& h : e.headers)
        bytes += sizeof(header) + h.name.size() + h.value.value_or("").size();
    return bytes;
}

/// The flags must have been checked.
event event_of(const settings& values, std::string_view topic) {
    event out;
    out.topic = topic.empty() ? values.text("topic") : std::string{topic};
    if (values.given("key")) out.key = values.text("key");
    if (values.given("key-base64")) out.key = from_base64(values.text("key-base64"));
    if (values.given("value")) out.value = values.text("value");
    if (values.given("value-base64")) out.value = from_base64(values.text("value-base64"));
    for (const std::string& text : values.list("header")) {
        const std::size_t equals = text.find('=');
        out.headers.push_back({text.substr(0, equals), text.substr(equals + 1)});
    }
    if (topic.empty() && values.given("partition"))
        out.partition = static_cast<std::int32_t>(values.count("partition"));
    return out;
}

std::string count_text(std::uint64_t n, std::string_view verb) {
    return fmt::format("{} {}\n", verb, counted(n, "event"));
}

std::string written_before(std::uint64_t n, std::string_view what) {
    return n == 1 ? fmt::format("1 event before {} was", what)
                  : fmt::format("{} events before {} were", n, what);
}

/// Reads all of standard input.
class feed {
public:
    feed(const settings& values, std::string_view topic, const write_batch& write, const check_event& check)
        : topic_(topic),
          write_(write),
          check_(check),
          rows_max_(values.count("batch-rows")),
          bytes_max_(values.bytes("batch-bytes")),
          patience_(std::chrono::ceil<std::chrono::milliseconds>(values.duration("batch-delay"))),
          line_bytes_max_(values.bytes("line-bytes-max")),
          reader_(STDIN_FILENO, line_bytes_max_, signals_.fd()) {}

    /// Gives how many events were written.
    result<std::uint64_t> run() {
        while (true) {
            std::string_view line;
            const auto got = reader_.next(line, patience_);
            switch (got) {
                case line_reader::outcome::line:
                    if (auto taken = take(line); !taken) return tl::unexpected(taken.error());
                    break;
                case line_reader::outcome::idle:
                    // A writer that pauses must not wait for the rest of a batch.
                    if (auto done = flush(); !done) return tl::unexpected(done.error());
                    break;
                case line_reader::outcome::stopped:
                case line_reader::outcome::end:
                    if (auto done = flush(); !done) return tl::unexpected(done.error());
                    line_.clear();
                    if (got == line_reader::outcome::stopped) say_stopped();
                    return written_;
                case line_reader::outcome::too_long:
                    return bad_line(fmt::format("longer than {} bytes (--line-bytes-max)", line_bytes_max_));
                case line_reader::outcome::failed:
                    return fail(
                        errc::unavailable,
                        fmt::format("standard input cannot be read: {}", std::strerror(errno))
                    );
            }
        }
    }

private:
    result<void> take(std::string_view line) {
        if (line.find_first_not_of(" \t\r") == std::string_view::npos) return {};
        auto parsed = parse_event(line, topic_);
        if (!parsed) return bad_line(parsed.error().detail);
        if (check_) {
            if (const auto fine = check_(*parsed); !fine) return bad_line(fine.error().detail);
        }
        bytes_ += bytes_of(*parsed);
        if (batch_.empty()) first_line_ = reader_.number();
        batch_.push_back(std::move(*parsed));
        if (batch_.size() < rows_max_ && bytes_ < bytes_max_) return {};
        return flush();
    }

    void say_stopped() const {
        say(fmt::format(
            "millrace: stopped by a signal; all up to line {} was written, and nothing behind it was read\n",
            reader_.number()
        ));
    }

    [[nodiscard]] tl::unexpected<error> bad_line(std::string_view why) const {
        return fail(
            errc::invalid_argument,
            fmt::format(
                "line {}: {}; {}",
                reader_.number(),
                why,
                written_ == 0
                    ? "nothing was written"
                    : fmt::format("nothing of its batch was written, {}", written_before(written_, "it"))
            )
        );
    }

    result<void> flush() {
        if (batch_.empty()) return {};
        if (auto done = write_(batch_); !done) {
            error why = done.error();
            const auto lines = fmt::format("lines {} to {} were", first_line_, reader_.number());
            why.detail = why.in_doubt
                             ? fmt::format(
                                   "it is not known whether {} written; look before you send them again: {}",
                                   lines,
                                   why.detail
                               )
                             : fmt::format("{} not written: {}", lines, why.detail);
            if (written_ > 0) why.detail += fmt::format("; {}", written_before(written_, "them"));
            return tl::unexpected(std::move(why));
        }
        written_ += batch_.size();
        batch_.clear();
        bytes_ = 0;
        line_.show({.done = written_, .what = "written", .backlog = backlog()});
        return {};
    }

    /// How many events are still to come, where the input is a file, judged by the bytes of those before.
    [[nodiscard]] std::optional<std::uint64_t> backlog() const {
        struct stat input {};
        if (!line_.enabled() || ::fstat(STDIN_FILENO, &input) != 0 || !S_ISREG(input.st_mode)) return {};
        const off_t read = ::lseek(STDIN_FILENO, 0, SEEK_CUR);
        if (read <= 0 || read > input.st_size) return {};
        const double share = static_cast<double>(input.st_size - read) / static_cast<double>(read);
        return static_cast<std::uint64_t>(static_cast<double>(written_) * share);
    }

    std::string topic_;
    const write_batch& write_;
    const check_event& check_;
    std::size_t rows_max_;
    std::size_t bytes_max_;
    std::chrono::milliseconds patience_;
    std::uint64_t line_bytes_max_;
    stop_signals signals_;
    line_reader reader_;
    std::vector<event> batch_;
    std::size_t bytes_{0};
    std::uint64_t first_line_{0};
    std::uint64_t written_{0};
    live_line line_;
};

void check_base64(const settings& values, std::string_view option, faults& found) {
    if (values.given(option) && !from_base64(values.text(option))) {
        found.add(fmt::format("--{}: the value is not valid base64", option));
    }
}

}  // namespace

void add_put_options(std::vector<option_spec>& options, bool with_topic) {
    if (with_topic) {
        options.push_back({.name = "topic", .placeholder = "TOPIC", .meaning = "Topic of one event"});
    }
    options.push_back(
        {.name = "key",
         .placeholder = "TEXT",
         .meaning = "Key of one event; without it, the event has no order"}
    );
    options.push_back({.name = "key-base64", .placeholder = "BASE64", .meaning = "The key as bytes"});
    options.push_back({.name = "value", .placeholder = "TEXT", .meaning = "Value of one event"});
    options.push_back({.name = "value-base64", .placeholder = "BASE64", .meaning = "The value as bytes"});
    options.push_back(
        {.name = "null-value", .kind = kind::flag, .fallback = "false", .meaning = "A tombstone: no value"}
    );
    options.push_back(
        {.name = "header",
         .placeholder = "NAME=VALUE",
         .meaning = "A header of one event; may be repeated",
         .many = true}
    );
    if (with_topic) {
        options.push_back(
            {.name = "partition",
             .kind = kind::count,
             .placeholder = "N",
             .meaning = "Partition of one event, for sinks that number them",
             .most = "2147483647"}
        );
    }
    options.push_back(count_option("batch-rows", "10000", "1000000", "Events of one transaction"));
    options.push_back(bytes_option("batch-bytes", "16MiB", "Bytes of one transaction"));
    options.push_back(
        time_option("batch-delay", "1s", "10ms", "1m", "Events are written when the input pauses for so long")
    );
    options.push_back(bytes_option("line-bytes-max", "32MiB", "Longest line of the input"));
}

void check_put(const settings& values, faults& found) {
    if (!from_flags(values)) return;
    if (has_topic_option(values) && values.text("topic").empty()) {
        found.add(
            "--topic is missing; give --topic TOPIC, or events as NDJSON and none of the flags of an event"
        );
    } else if (has_topic_option(values)) {
        if (const auto why = misfit_of_topic(values.text("topic")); !why.empty())
            found.add(fmt::format("--topic {}", why));
    }
    if (values.given("key") && values.given("key-base64"))
        found.add("--key and --key-base64 exclude each other");
    const int sources =
        int{values.given("value")} + int{values.given("value-base64")} + int{values.flag("null-value")};
    if (sources == 0)
        found.add("--value is missing; give --value, --value-base64, or --null-value for a tombstone");
    if (sources > 1) found.add("--value, --value-base64 and --null-value exclude each other");
    check_base64(values, "key-base64", found);
    check_base64(values, "value-base64", found);
    for (const std::string& text : values.list("header")) {
        if (text.find('=') == std::string::npos)
            found.add("--header: expected NAME=VALUE");
        else if (!is_utf8(text.substr(0, text.find('='))))
            found.add("--header: the name is not UTF-8");
    }
}

exit_status run_put(
    const settings& values, std::string_view topic, const write_batch& write, const check_event& check
) {
    if (from_flags(values)) {
        const event one = event_of(values, topic);
        if (check) {
            if (const auto fine = check(one); !fine) {
                return complain({errc::invalid_argument, retry_advice::never, false, fine.error().detail});
            }
        }
        if (auto done = write(std::span{&one, 1}); !done) {
            if (done.error().in_doubt) {
                done.error().detail = fmt::format(
                    "it is not known whether the event was written; look before you send it again: {}",
                    done.error().detail
                );
            }
            return complain(done.error());
        }
        return print(count_text(1, "wrote"));
    }
    if (::isatty(STDIN_FILENO) == 1) {
        say("millrace: reading events from the terminal, one JSON object a line; end with Ctrl-D\n");
    }
    feed input(values, topic, write, check);
    const auto written = input.run();
    if (!written) return complain(written.error());
    return print(count_text(*written, "wrote"));
}

}  // namespace millrace::app
