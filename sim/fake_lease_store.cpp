#include "fake_lease_store.hpp"

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

namespace millrace::sim {

namespace {

std::string name_of(const lease_key& key) {
    if (const auto* worker = std::get_if<incarnation>(&key)) return "worker " + worker->value();
    if (const auto* shard = std::get_if<shard_id>(&key)) return "shard " + shard->value();
    return "the group's row";
}

// A listing that is no snapshot: its rows are read in pages, each at a moment of its own.
template <class Row>
class paged_listing : public std::enable_shared_from_this<paged_listing<Row>> {
public:
    using finish = std::function<void(result<std::vector<Row>>)>;

    paged_listing(
        const lease_table& table, scheduler& world, std::size_t page, nanoseconds pause, finish then
    )
        : table_(table), world_(world), page_(page), pause_(pause), then_(std::move(then)) {}

    void read_page() {
        auto at = last_ ? table_.rows().upper_bound(*last_) : table_.rows().begin();
        for (std::size_t read = 0; at != table_.rows().end(); ++at) {
            const auto* row = std::get_if<Row>(&at->second);
            if (row == nullptr) continue;
            if (read++ == page_) {
                world_.at(world_.now() + pause_, [self = this->shared_from_this()] { self->read_page(); });
                return;
            }
            rows_.push_back(as_listed(*row));
            last_ = at->first;
        }
        then_(std::move(rows_));
    }

private:
    Row as_listed(const Row& row) const {
        const auto why = table_.damage_of(key_of(lease_row(row)));
        if (!why) return row;
        if constexpr (std::is_same_v<Row, shard_row>) {
            return unreadable_row(row.shard, *why);
        } else {
            Row named;
            named.incarnation = row.incarnation;
            named.unreadable = why->detail;
            return named;
        }
    }

    const lease_table& table_;
    scheduler& world_;
    std::size_t page_;
    nanoseconds pause_;
    finish then_;
    std::vector<Row> rows_;
    std::optional<lease_key> last_;
};

template <class Row>
void list(const lease_table& table, link& way, std::string_view request, completion<std::vector<Row>> done) {
    const auto page = 1 + table.rows().size() / (1 + way.random().below(4));
    const auto pause = way.latency();
    auto& world = way.world();
    way.ask_slowly<std::vector<Row>>(
        request,
        [&table, &world, page, pause](const typename paged_listing<Row>::finish& finish) {
            std::make_shared<paged_listing<Row>>(table, world, page, pause, finish)->read_page();
        },
        std::move(done)
    );
}

}  // namespace

const lease_row* lease_table::find(const lease_key& key) const {
    const auto found = rows_.find(key);
    return found == rows_.end() ? nullptr : &found->second;
}

std::optional<error> lease_table::damage_of(const lease_key& key) const {
    if (!damaged_.contains(key)) return std::nullopt;
    return error{
        errc::corrupt, retry_advice::after_delay, false, name_of(key) + " is not what Millrace writes"};
}

result<void> lease_table::write(
    const lease_row& row, std::optional<version> expected, const std::string& client
) {
    const auto key = key_of(row);
    if (expected && version_of(row).value() != expected->value() + 1) {
        return fail(
            errc::invalid_argument,
            fmt::format("{}: the new version must be the expected one + 1", name_of(key))
        );
    }
    const auto* stored = find(key);
    const bool fits =
        stored != nullptr && expected && version_of(*stored) == *expected && !hides_counter(key);
    if (expected ? !fits : stored != nullptr) {
        return fail(
            errc::conflict,
            fmt::format("{}: the stored row is not as the writer believed; read it again", name_of(key))
        );
    }
    const auto before = stored != nullptr ? std::optional(*stored) : std::nullopt;
    rows_[key] = row;
    if (observer_) observer_(client, before ? &*before : nullptr, &row);
    return {};
}

result<void> lease_table::remove(const lease_key& key, version expected, const std::string& client) {
    const auto* stored = find(key);
    if (stored == nullptr || version_of(*stored) != expected || hides_counter(key)) {
        return fail(
            errc::conflict,
            fmt::format(
                "{}: the row to be deleted is not as the writer believed; read it again", name_of(key)
            )
        );
    }
    const auto before = *stored;
    rows_.erase(key);
    if (observer_) observer_(client, &before, nullptr);
    return {};
}

void fake_lease_store::list_workers(completion<std::vector<worker_row>> done) {
    list<worker_row>(table_, link_, "list_workers", std::move(done));
}

void fake_lease_store::list_shards(completion<std::vector<shard_row>> done) {
    list<shard_row>(table_, link_, "list_shards", std::move(done));
}

void fake_lease_store::read(lease_key key, completion<std::optional<lease_row>> done) {
    link_.ask<std::optional<lease_row>>(
        "read",
        [&table = table_, key = std::move(key)]() -> result<std::optional<lease_row>> {
            if (auto damage = table.damage_of(key)) return tl::unexpected(std::move(*damage));
            const auto* row = table.find(key);
            return row != nullptr ? std::optional(*row) : std::nullopt;
        },
        std::move(done)
    );
}

void fake_lease_store::write(lease_row row, std::optional<version> expected, completion<void> done) {
    link_.change<void>(
        "write",
        [&table = table_, row = std::move(row), expected, name = name_] {
            return table.write(row, expected, name);
        },
        std::move(done)
    );
}

void fake_lease_store::remove(lease_key key, version expected, completion<void> done) {
    link_.change<void>(
        "remove",
        [&table = table_, key = std::move(key), expected, name = name_] {
            return table.remove(key, expected, name);
        },
        std::move(done)
    );
}

}  // namespace millrace::sim
