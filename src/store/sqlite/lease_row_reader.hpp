/// Rows of leases from the columns of a statement, each checked: what Millrace does not write is `corrupt`,
/// with the name of the column. A damaged epoch that were read as another would void the fence.
#pragma once

#include "overload.hpp"
#include "port/lease_fields.hpp"
#include "port/lease_store.hpp"
#include "statement.hpp"

#include <millrace/error.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace millrace::lease_tables {

/// A JSON list of names; nothing when it is none.
[[nodiscard]] std::optional<std::vector<shard_id>> parents_from_json(std::string_view json);

/// The columns of a row, in the order in which `column_reader` takes them.
template <class Row>
[[nodiscard]] std::string columns_of_row() {
    std::string list;
    const auto add = [&](std::string_view name) {
        list += fmt::format("{}{}", list.empty() ? "" : ", ", name);
    };
    const auto name_of = overload{
        [&](key_field key, const auto&) { add(key.name); },
        [&](const checkpoint_field& parts, const auto&) {
            for (const auto part : {parts.sequence, parts.sub_sequence, parts.arrival})
                add(part);
        },
        [&](std::string_view name, const auto&) { add(name); }};
    const Row none;
    visit_fields(none, name_of);
    return list;
}

/// Columns to fields; remembers the first one that is not as Millrace writes it.
class column_reader {
public:
    explicit column_reader(const sqlite::statement& from) : from_(from) {}

    template <class Field>
    void operator()(key_field key, Field& name) {
        name = Field{text(key.name)};
    }
    void operator()(std::string_view name, std::string& to) { to = text(name); }
    template <class Tag>
    void operator()(std::string_view name, strong<Tag, std::string>& to) {
        to = strong<Tag, std::string>{text(name)};
    }
    template <class Tag>
    void operator()(std::string_view name, strong<Tag, std::uint64_t>& to) {
        to = strong<Tag, std::uint64_t>{count(name)};
    }
    /// All its bits are drawn.
    void operator()(std::string_view name, write_id& to) {
        to = write_id{static_cast<std::uint64_t>(whole(name))};
    }
    void operator()(std::string_view name, std::uint64_t& to) { to = count(name); }
    void operator()(std::string_view name, std::uint32_t& to) {
        const auto found = count(name);
        if (found > std::numeric_limits<std::uint32_t>::max()) fault(name);
        to = static_cast<std::uint32_t>(found);
    }
    void operator()(std::string_view name, std::int64_t& to) { to = whole(name); }
    void operator()(std::string_view name, nanoseconds& to) {
        to = nanoseconds{static_cast<std::int64_t>(count(name))};
    }
    void operator()(std::string_view name, wall_time& to) { to = wall_time{milliseconds{whole(name)}}; }
    void operator()(std::string_view name, std::optional<wall_time>& to) {
        to.reset();
        if (from_.is_null(at_)) {
            ++at_;
        } else {
            to = wall_time{milliseconds{whole(name)}};
        }
    }
    void operator()(std::string_view name, start_policy& to) {
        const auto known = std::find(start_names.begin(), start_names.end(), text(name));
        if (known == start_names.end()) return fault(name);
        to = static_cast<start_policy>(known - start_names.begin());
    }
    void operator()(std::string_view name, std::vector<shard_id>& to) {
        auto names = parents_from_json(text(name));
        if (!names) return fault(name);
        to = std::move(*names);
    }
    void operator()(const checkpoint_field& parts, std::optional<checkpoint>& to) {
        to.reset();
        const bool there = !from_.is_null(at_);
        const bool whole_there = !from_.is_null(at_ + 1) && !from_.is_null(at_ + 2);
        const bool none_there = from_.is_null(at_ + 1) && from_.is_null(at_ + 2);
        if (!there) {
            if (!none_there) fault(parts.sequence);
            at_ += 3;
            return;
        }
        const auto sequence = sequence_number::parse(text(parts.sequence));
        if (!sequence || !whole_there) fault(parts.sequence);
        const auto sub_sequence = count(parts.sub_sequence);
        const wall_time arrival{milliseconds{whole(parts.arrival)}};
        if (sequence) to = checkpoint{{*sequence, sub_sequence}, arrival};
    }

    [[nodiscard]] const std::optional<std::string_view>& broken() const { return broken_; }

private:
    std::string text(std::string_view name) {
        if (from_.type(at_) != sqlite::value_type::text) fault(name);
        return from_.text(at_++);
    }
    /// Zero where it is none: what it would be converted to says nothing.
    std::int64_t whole(std::string_view name) {
        const auto at = at_++;
        if (from_.type(at) == sqlite::value_type::integer) return from_.integer(at);
        fault(name);
        return 0;
    }
    std::uint64_t count(std::string_view name) {
        const auto found = whole(name);
        if (found < 0) fault(name);
        return static_cast<std::uint64_t>(std::max<std::int64_t>(found, 0));
    }
    void fault(std::string_view name) {
        if (!broken_) broken_ = name;
    }

    const sqlite::statement& from_;
    int at_{0};
    std::optional<std::string_view> broken_;
};

inline std::string who(const group_row&) {
    return "the group";
}
inline std::string who(const worker_row& w) {
    return fmt::format("worker \"{}\"", w.worker.value());
}
inline std::string who(const shard_row& s) {
    return fmt::format("shard \"{}\"", s.shard.value());
}

/// Fills in what can be read.
template <class Row>
[[nodiscard]] result<void> read_into(Row& row, std::string_view where, const sqlite::statement& from) {
    column_reader fields(from);
    visit_fields(row, fields);
    if (!fields.broken()) return {};
    return fail(
        errc::corrupt,
        fmt::format(
            "cannot read the leases in {}: column {} of {} is not what Millrace writes; repair the row, or "
            "restore the file from a backup{}",
            where,
            *fields.broken(),
            who(row),
            std::is_same_v<Row, shard_row>    ? ", or delete the row: a shard without one begins anew"
            : std::is_same_v<Row, worker_row> ? ", or delete the row: its worker registers anew"
                                              : ""
        )
    );
}

template <class Row>
[[nodiscard]] result<Row> row_at(std::string_view where, const sqlite::statement& from) {
    Row row;
    if (auto read = read_into(row, where, from); !read) return tl::unexpected(std::move(read.error()));
    return row;
}

}  // namespace millrace::lease_tables
