#include "lease_columns.hpp"

#include "binary.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace millrace::postgres {

namespace {

/// Takes the values in order and remembers the first column that is not as expected.
class column_reader {
public:
    explicit column_reader(row_values values) : values_(values) {}

    std::string text() { return std::string(need(next())); }
    std::int64_t integer() { return need(as_integer(next())); }
    std::uint64_t bits() { return static_cast<std::uint64_t>(integer()); }
    wall_time time() { return need(as_time(next())); }

    /// A count that grows from zero: a negative one would wrap.
    std::uint64_t count() {
        const auto value = integer();
        if (value < 0) fault();
        return static_cast<std::uint64_t>(std::max<std::int64_t>(value, 0));
    }
    std::optional<wall_time> maybe_time() {
        return values_[at_].has_value() ? std::optional(time()) : (++at_, std::nullopt);
    }
    std::optional<std::string> maybe_text() {
        return values_[at_].has_value() ? std::optional(text()) : (++at_, std::nullopt);
    }
    std::optional<std::uint64_t> maybe_count() {
        return values_[at_].has_value() ? std::optional(count()) : (++at_, std::nullopt);
    }

    std::vector<shard_id> names() {
        std::vector<shard_id> found;
        auto array = array_reader::open(next().value_or(""));
        if (!array || array->element() != type_id::text) fault();
        for (std::size_t i = 0; array && i < array->size(); ++i) {
            const auto item = array->next();
            if (!item || !item->value) {
                fault();
                break;
            }
            found.emplace_back(std::string(*item->value));
        }
        return found;
    }

    /// The value that was taken last is not one that Millrace writes.
    void fault() {
        if (!broken_) broken_ = at_ - 1;
    }
    [[nodiscard]] std::optional<std::size_t> broken() const { return broken_; }

private:
    std::optional<std::string_view> next() { return values_[at_++]; }
    static std::optional<std::int64_t> as_integer(std::optional<std::string_view> value) {
        return value ? decode_integer(*value) : std::nullopt;
    }
    static std::optional<wall_time> as_time(std::optional<std::string_view> value) {
        return value ? decode_time(*value) : std::nullopt;
    }

    template <class T>
    T need(std::optional<T> value) {
        if (!value) fault();
        return value.value_or(T{});
    }

    row_values values_;
    std::size_t at_{0};
    std::optional<std::size_t> broken_;
};

tl::unexpected<error> unreadable(std::string_view where, std::string_view row, std::string_view column) {
    return fail(
        errc::corrupt,
        fmt::format(
            "cannot read the leases in {}: column {} of {} is not what Millrace writes; repair the row, or "
            "delete it: a shard without one begins anew",
            where,
            column,
            row
        ),
        retry_advice::after_delay
    );
}

std::optional<checkpoint> checkpoint_of(column_reader& from) {
    const auto text = from.maybe_text();
    const auto sequence = sequence_number::parse(text.value_or("0"));
    if (!sequence) from.fault();
    const auto sub_sequence = from.maybe_count();
    if (sub_sequence.has_value() != text.has_value()) from.fault();
    const auto arrival = from.maybe_time();
    if (arrival.has_value() != text.has_value()) from.fault();
    if (!text || !sequence || !sub_sequence || !arrival) return std::nullopt;
    return checkpoint{{*sequence, *sub_sequence}, *arrival};
}

}  // namespace

result<group_row> decode_group(row_values values, std::string_view where) {
    column_reader from(values);
    group_row g;
    g.version = version{from.count()};
    const auto format = from.count();
    if (format > std::numeric_limits<std::uint32_t>::max()) from.fault();
    g.format = static_cast<std::uint32_t>(format);
    g.write_id = write_id{from.bits()};
    g.stream_identity = from.text();
    const auto* const known = std::find(start_names.begin(), start_names.end(), from.text());
    if (known == start_names.end()) from.fault();
    g.start = static_cast<start_policy>(known - start_names.begin());
    g.start_at = from.maybe_time();
    g.epoch_floor = epoch{from.count()};
    if (from.broken()) return unreadable(where, "the group", group_columns[*from.broken()]);
    return g;
}

namespace {

result<void> read_into(worker_row& w, row_values values, std::string_view where) {
    column_reader from(values);
    w.incarnation = incarnation{from.text()};
    w.counter = version{from.count()};
    w.worker = worker_id{from.text()};
    w.write_id = write_id{from.bits()};
    w.lease = nanoseconds{static_cast<std::int64_t>(from.count())};
    w.changes = from.count();
    w.process.host = from.text();
    w.process.boot_id = from.text();
    w.process.pid_namespace = from.text();
    w.process.pid = from.integer();
    w.process.start_time = from.bits();
    w.updated_at = from.time();
    if (from.broken()) {
        return unreadable(
            where, fmt::format("worker \"{}\"", w.worker.value()), worker_columns[*from.broken()]
        );
    }
    return {};
}

}  // namespace

result<worker_row> decode_worker(row_values values, std::string_view where) {
    worker_row row;
    if (auto read = read_into(row, values, where); !read) return tl::unexpected(std::move(read.error()));
    return row;
}

result<worker_row> decode_listed_worker(row_values values, std::string_view where) {
    worker_row row;
    if (const auto read = read_into(row, values, where); !read) row.unreadable = read.error().detail;
    return row;
}

result<shard_row> decode_shard(row_values values, std::string_view where) {
    column_reader from(values);
    shard_row s;
    s.shard = shard_id{from.text()};
    s.version = version{from.count()};
    s.parents = from.names();
    s.owner = incarnation{from.text()};
    s.epoch = epoch{from.count()};
    s.write_id = write_id{from.bits()};
    s.checkpoint = checkpoint_of(from);
    s.finished_at = from.maybe_time();
    s.updated_at = from.time();
    if (from.broken()) {
        return unreadable(where, fmt::format("shard \"{}\"", s.shard.value()), shard_columns[*from.broken()]);
    }
    return s;
}

result<shard_row> decode_listed_shard(row_values values, std::string_view where) {
    auto row = decode_shard(values, where);
    const auto& name = values.front();
    if (!row && name) row = unreadable_row(shard_id{std::string(*name)}, row.error());
    return row;
}

}  // namespace millrace::postgres
