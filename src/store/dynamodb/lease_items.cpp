#include "lease_items.hpp"

#include "overload.hpp"
#include "port/lease_fields.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace millrace::lease_items {

using aws::dynamodb::list;
using aws::dynamodb::number;
using aws::dynamodb::value;

namespace {

// Before the name that a sort key holds: one cannot be empty, but a name can.
constexpr std::string_view group_mark = "group/";
constexpr std::string_view worker_mark = "worker/";
constexpr std::string_view shard_mark = "shard/";

/// A part of a key that is made of several: `/` stays what divides them.
std::string escaped(std::string_view name) {
    std::string text;
    for (const char c : name) {
        if (c == '%') {
            text += "%25";
        } else if (c == '/') {
            text += "%2F";
        } else {
            text += c;
        }
    }
    return text;
}

std::string partition(std::string_view kind, const group_key& group) {
    return fmt::format("{}/{}/{}", kind, escaped(group.stream), escaped(group.name));
}

item key(std::string in, std::string_view mark, std::string_view name) {
    return {
        {table_key.partition, value{std::move(in)}},
        {table_key.sort, value{std::string(mark) + std::string(name)}}};
}

std::int64_t millis(wall_time at) {
    return at.time_since_epoch().count();
}

/// Fields to attributes. What is empty has no attribute.
class writer {
public:
    explicit writer(aws::dynamodb::update& to) : to_(to) {}

    void operator()(key_field, const auto&) const {}
    void operator()(std::string_view name, const std::string& text) const {
        text.empty() ? drop(name) : set(name, text);
    }
    template <class Tag>
    void operator()(std::string_view name, const strong<Tag, std::string>& text) const {
        (*this)(name, text.value());
    }
    template <class Tag>
    void operator()(std::string_view name, const strong<Tag, std::uint64_t>& count) const {
        set(name, number::of(count.value()));
    }
    void operator()(std::string_view name, std::integral auto count) const { set(name, number::of(count)); }
    void operator()(std::string_view name, nanoseconds span) const { set(name, number::of(span.count())); }
    void operator()(std::string_view name, start_policy start) const {
        set(name, std::string(start_names[static_cast<std::size_t>(start)]));
    }
    void operator()(std::string_view name, wall_time at) const { set(name, number::of(millis(at))); }
    void operator()(std::string_view name, const std::optional<wall_time>& at) const {
        at ? (*this)(name, *at) : drop(name);
    }
    void operator()(std::string_view name, const std::vector<shard_id>& names) const {
        if (names.empty()) return drop(name);
        list all;
        for (const auto& one : names)
            all.push_back(value{one.value()});
        set(name, std::move(all));
    }
    void operator()(const checkpoint_field& names, const std::optional<checkpoint>& reached) const {
        if (reached) {
            set(names.sequence, reached->position.sequence.to_string());
            set(names.sub_sequence, number::of(reached->position.sub_sequence));
            set(names.arrival, number::of(millis(reached->arrival)));
        } else {
            drop(names.sequence);
            drop(names.sub_sequence);
            drop(names.arrival);
        }
    }

private:
    template <class T>
    void set(std::string_view name, T held) const {
        to_.set.insert_or_assign(std::string(name), value{std::move(held)});
    }
    void drop(std::string_view name) const { to_.remove.emplace_back(name); }

    aws::dynamodb::update& to_;
};

/// Attributes to fields; remembers the first one that is not as expected.
class reader {
public:
    reader(const item& from, std::string_view mark) : from_(from), mark_(mark) {}

    void operator()(key_field field, auto& name) {
        const auto* const text = held<std::string>(table_key.sort);
        if (text == nullptr || !text->starts_with(mark_)) return fault(field.name);
        name = std::remove_reference_t<decltype(name)>{text->substr(mark_.size())};
    }
    void operator()(std::string_view name, std::string& text) {
        if (!has(name)) return text.clear();
        const auto* const found = held<std::string>(name);
        if (found == nullptr) return fault(name);
        text = *found;
    }
    template <class Tag>
    void operator()(std::string_view name, strong<Tag, std::string>& text) {
        std::string found;
        (*this)(name, found);
        text = strong<Tag, std::string>{std::move(found)};
    }
    template <class Tag>
    void operator()(std::string_view name, strong<Tag, std::uint64_t>& count) {
        count = strong<Tag, std::uint64_t>{count_in(name)};
    }
    void operator()(std::string_view name, std::uint64_t& count) { count = count_in(name); }
    void operator()(std::string_view name, std::uint32_t& count) {
        const auto found = count_in(name);
        if (found > std::numeric_limits<std::uint32_t>::max()) return fault(name);
        count = static_cast<std::uint32_t>(found);
    }
    void operator()(std::string_view name, std::int64_t& whole) { whole = whole_in(name); }
    void operator()(std::string_view name, nanoseconds& span) {
        span = nanoseconds{whole_in(name)};
        if (span < nanoseconds{0}) fault(name);
    }
    void operator()(std::string_view name, start_policy& start) {
        std::string found;
        (*this)(name, found);
        const auto* const known = std::find(start_names.begin(), start_names.end(), found);
        if (known == start_names.end()) return fault(name);
        start = static_cast<start_policy>(known - start_names.begin());
    }
    void operator()(std::string_view name, wall_time& at) { at = wall_time{milliseconds{whole_in(name)}}; }
    void operator()(std::string_view name, std::optional<wall_time>& at) {
        at.reset();
        if (has(name)) (*this)(name, at.emplace());
    }
    void operator()(std::string_view name, std::vector<shard_id>& names) {
        names.clear();
        if (!has(name)) return;
        const auto* const found = held<list>(name);
        if (found == nullptr) return fault(name);
        for (const auto& one : *found) {
            const auto* const text = std::get_if<std::string>(&one.is);
            if (text == nullptr) return fault(name);
            names.emplace_back(*text);
        }
    }
    void operator()(const checkpoint_field& names, std::optional<checkpoint>& reached) {
        reached.reset();
        const bool there = has(names.sequence);
        if (has(names.sub_sequence) != there) return fault(names.sub_sequence);
        if (has(names.arrival) != there) return fault(names.arrival);
        if (!there) return;
        const auto* const text = held<std::string>(names.sequence);
        const auto sequence = sequence_number::parse(text != nullptr ? *text : "");
        if (!sequence) return fault(names.sequence);
        checkpoint found{{*sequence, count_in(names.sub_sequence)}, {}};
        (*this)(names.arrival, found.arrival);
        reached = found;
    }

    [[nodiscard]] const std::optional<std::string>& broken() const { return broken_; }

private:
    [[nodiscard]] bool has(std::string_view name) const { return from_.find(name) != from_.end(); }

    /// Null: absent, or of another type.
    template <class T>
    [[nodiscard]] const T* held(std::string_view name) const {
        const auto found = from_.find(name);
        return found == from_.end() ? nullptr : std::get_if<T>(&found->second.is);
    }
    std::uint64_t count_in(std::string_view name) {
        const auto* const found = held<number>(name);
        const auto count = found != nullptr ? found->as_unsigned() : std::nullopt;
        if (!count) fault(name);
        return count.value_or(0);
    }
    std::int64_t whole_in(std::string_view name) {
        const auto* const found = held<number>(name);
        const auto whole = found != nullptr ? found->as_signed() : std::nullopt;
        if (!whole) fault(name);
        return whole.value_or(0);
    }
    void fault(std::string_view name) {
        if (!broken_) broken_ = name;
    }

    const item& from_;
    std::string_view mark_;
    std::optional<std::string> broken_;
};

std::string sort_key_of(const item& from) {
    const auto sort = from.find(table_key.sort);
    const auto* const name = sort == from.end() ? nullptr : std::get_if<std::string>(&sort->second.is);
    return name != nullptr ? *name : "?";
}

/// Fills in what can be read.
template <class Row>
result<void> read_into(Row& row, const item& from, std::string_view mark, std::string_view where) {
    reader fields(from, mark);
    visit_fields(row, fields);
    if (!fields.broken()) return {};
    return fail(
        errc::corrupt,
        fmt::format(
            "cannot read the leases in {}: attribute {} of the row \"{}\" is not what Millrace writes; "
            "repair "
            "the item, or delete it: a shard without one begins anew",
            where,
            *fields.broken(),
            sort_key_of(from)
        ),
        retry_advice::after_delay
    );
}

template <class Row>
result<Row> read_row(const item& from, std::string_view mark, std::string_view where) {
    Row row;
    if (auto read = read_into(row, from, mark, where); !read) return tl::unexpected(std::move(read.error()));
    return row;
}

std::string version_attribute(const lease_key& key) {
    return std::
        string(std::holds_alternative<incarnation>(key) ? version_field<worker_row> : version_field<shard_row>);
}

}  // namespace

std::string groups_of(std::string_view stream) {
    return fmt::format("groups/{}", escaped(stream));
}

std::string workers_of(const group_key& group) {
    return partition("workers", group);
}

std::string shards_of(const group_key& group) {
    return partition("shards", group);
}

aws::dynamodb::equals all_in(std::string in) {
    return {table_key.partition, value{std::move(in)}};
}

item key_of(const group_key& group, const lease_key& named) {
    return std::visit(
        overload{
            [&](std::monostate) { return key(groups_of(group.stream), group_mark, group.name); },
            [&](const incarnation& i) { return key(workers_of(group), worker_mark, i.value()); },
            [&](const shard_id& s) { return key(shards_of(group), shard_mark, s.value()); },
        },
        named
    );
}

std::optional<std::string> group_name_of(const item& group_item) {
    const auto found = group_item.find(table_key.sort);
    const auto* const text =
        found == group_item.end() ? nullptr : std::get_if<std::string>(&found->second.is);
    if (text == nullptr || !text->starts_with(group_mark)) return std::nullopt;
    return text->substr(group_mark.size());
}

aws::dynamodb::condition has_version(const lease_key& key, version expected) {
    return aws::dynamodb::equals{version_attribute(key), value{number::of(expected.value())}};
}

aws::dynamodb::update update_of(
    const group_key& group, const lease_row& row, std::optional<version> expected, wall_time now
) {
    const auto key = millrace::key_of(row);
    aws::dynamodb::update made{key_of(group, key), {}, {}, aws::dynamodb::absent{table_key.partition}};
    if (expected) made.only_if = has_version(key, *expected);
    std::visit([&](const auto& one) { visit_fields(one, writer(made)); }, row);
    if (!expected) made.remove.clear();
    if (std::holds_alternative<worker_row>(row)) {
        const auto end = std::chrono::floor<std::chrono::seconds>(now + worker_kept);
        made.set.insert_or_assign(expiry, value{number::of(end.time_since_epoch().count())});
    }
    return made;
}

bool written_by(const item& from, write_id which) {
    const auto found = from.find("write_id");
    return found != from.end() && found->second == value{number::of(which.value())};
}

result<group_row> read_group(const item& from, std::string_view where) {
    return read_row<group_row>(from, group_mark, where);
}

result<worker_row> read_worker(const item& from, std::string_view where) {
    return read_row<worker_row>(from, worker_mark, where);
}

result<shard_row> read_shard(const item& from, std::string_view where) {
    return read_row<shard_row>(from, shard_mark, where);
}

result<shard_row> read_listed_shard(const item& from, std::string_view where) {
    shard_row row;
    const auto read = read_into(row, from, shard_mark, where);
    if (read) return row;
    const bool is_named = !row.shard.value().empty();
    return unreadable_row(is_named ? std::move(row.shard) : foreign_row(sort_key_of(from)), read.error());
}

result<worker_row> read_listed_worker(const item& from, std::string_view where) {
    worker_row row;
    if (const auto read = read_into(row, from, worker_mark, where); !read)
        row.unreadable = read.error().detail;
    return row;
}

}  // namespace millrace::lease_items
