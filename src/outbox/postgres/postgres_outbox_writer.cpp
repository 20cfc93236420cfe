#include "application_connection.hpp"
#include "outbox_insert.hpp"
#include "outbox_layout.hpp"
#include "record/bytes_text.hpp"

#include <millrace/outbox_postgres.hpp>

#include <optional>
#include <vector>

#include <fmt/format.h>

namespace millrace {

using postgres::bytes_view;
using postgres::effect;
using postgres::name_of;
using postgres::run_on;
using postgres::statement;

namespace {

tl::unexpected<error> invalid(std::string why) {
    return fail(errc::invalid_argument, std::move(why));
}

}  // namespace

result<postgres_outbox_writer> postgres_outbox_writer::open(
    pg_conn* db, postgres_outbox_writer_options options
) {
    if (options.event_bytes_max == 0 ||
        options.event_bytes_max > postgres_outbox_writer_options::event_bytes_limit) {
        return invalid(fmt::format(
            "event_bytes_max is {}; it must be from 1 to {}",
            options.event_bytes_max,
            postgres_outbox_writer_options::event_bytes_limit
        ));
    }
    const auto table = postgres::parse_table_name(options.table);
    if (!table) return tl::unexpected(table.error());
    const auto quoted = table->quoted();
    const auto found = run_on(db, postgres::layout_query(quoted));
    if (!found) return tl::unexpected(found.error());
    const auto layout = postgres::layout_from(*found, *table, name_of(db));
    if (!layout) return tl::unexpected(layout.error());
    auto insert = postgres::insert_event_sql(*layout, options.serialise_keys);
    return postgres_outbox_writer(
        db, std::move(insert), layout->names.has_value(), layout->partition.has_value(), std::move(options)
    );
}

result<row_id> postgres_outbox_writer::add(const event& what) {
    if (what.topic.empty() || !is_utf8(what.topic)) {
        return invalid("the event has no topic, or one that is not UTF-8; name a topic");
    }
    if (what.partition && *what.partition < 0) {
        return invalid(fmt::format("the partition of the event is {}; it must be 0 or more", *what.partition)
        );
    }
    if ((what.partition && !has_partition_) || (!what.headers.empty() && !has_headers_)) {
        return invalid(fmt::format(
            "the outbox {} has no column for the event's partition or headers; run `millrace outbox init`, "
            "or leave them out",
            options_.table
        ));
    }
    std::vector<std::optional<std::string_view>> names;
    std::vector<std::optional<std::string_view>> values;
    auto bytes = what.topic.size() + what.key.value_or("").size() + what.value.value_or("").size();
    for (const auto& [name, value] : what.headers) {
        if (!is_utf8(name)) return invalid("the name of a header is not UTF-8");
        bytes += name.size() + (value ? value->size() : 0);
        names.emplace_back(name);
        values.push_back(value ? std::optional<std::string_view>(*value) : std::nullopt);
    }
    if (bytes > options_.event_bytes_max) {
        return invalid(fmt::format(
            "the event for topic \"{}\" has {} bytes, and the limit is {}; store large data elsewhere and "
            "send a reference, or raise event_bytes_max",
            what.topic,
            bytes,
            options_.event_bytes_max
        ));
    }
    statement insert(insert_, effect::writes, "write an event to the outbox in");
    insert.add(what.topic);
    for (const auto* const part : {&what.key, &what.value}) {
        if (*part) {
            insert.add(bytes_view{**part});
        } else {
            insert.add(std::nullopt);
        }
    }
    if (has_headers_) {
        insert.add(postgres::text_array{names});
        insert.add(postgres::bytes_array{values});
    }
    if (has_partition_) insert.add(what.partition);
    const auto added = run_on(db_, insert);
    if (!added) return tl::unexpected(added.error());
    return row_id{added->integer(0, 0).value_or(0)};
}

}  // namespace millrace
