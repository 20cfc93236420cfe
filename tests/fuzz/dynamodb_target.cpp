#include "dynamodb/replies.hpp"
#include "dynamodb/requests.hpp"
#include "lease_items.hpp"
#include "targets.hpp"

#include <algorithm>
#include <variant>

#include <boost/json.hpp>

namespace millrace::fuzz {

namespace {

namespace items = lease_items;
using aws::dynamodb::item;
using aws::dynamodb::value;

const group_key group{"s", "g"};

bool is_ours(const value& held) {
    if (const auto* const all = std::get_if<aws::dynamodb::list>(&held.is))
        return std::all_of(all->begin(), all->end(), is_ours);
    return !std::holds_alternative<aws::dynamodb::foreign>(held.is);
}

template <class Row>
void require_kept(const item& from, result<Row> (*read)(const item&, std::string_view)) {
    const auto row = read(from, "t");
    if (!row) {
        require(row.error().code == errc::corrupt, "an item that cannot be read is corrupt");
        require(!row.error().detail.empty(), "a refusal says why");
        return;
    }
    auto written = items::update_of(group, *row, std::nullopt, wall_time{});
    written.set.merge(written.key);
    const auto sent = items::update_of(group, *row, version{1}, wall_time{});
    require(!aws::dynamodb::update_item("t", sent).empty(), "a row that was read can be sent");
    const auto again = read(written.set, "t");
    require(again && *again == *row, "a row that is written reads as itself");
}

void require_read(const item& one) {
    if (std::all_of(one.begin(), one.end(), [](const auto& held) { return is_ours(held.second); })) {
        require(
            aws::dynamodb::item_from(boost::json::parse(boost::json::serialize(to_json(one)))) == one,
            "an item that is written reads as itself"
        );
    }
    require_kept(one, items::read_group);
    require_kept(one, items::read_worker);
    require_kept(one, items::read_shard);
    (void)items::group_name_of(one);
    (void)items::written_by(one, write_id{1});
}

}  // namespace

void dynamodb_replies(std::string_view body) {
    if (const auto page = aws::dynamodb::read_query(body)) {
        for (const auto& one : page->items)
            require_read(one);
        require_read(page->next);
    }
    if (const auto found = aws::dynamodb::read_get_item(body); found && *found) require_read(**found);
    if (const auto refused = aws::dynamodb::refused_item(body)) require_read(*refused);
    (void)aws::dynamodb::read_describe_table(body);
    (void)aws::dynamodb::read_describe_time_to_live(body);
}

}  // namespace millrace::fuzz
