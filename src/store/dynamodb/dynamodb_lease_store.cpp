#include "dynamodb_lease_store.hpp"

#include "assert.hpp"
#include "dynamodb/replies.hpp"
#include "dynamodb/requests.hpp"
#include "lease_items.hpp"
#include "table_client.hpp"

#include <functional>
#include <future>
#include <utility>

#include <fmt/format.h>

namespace millrace {

namespace dynamodb = aws::dynamodb;
using dynamodb::item;

namespace {

// A stream has some tens of thousands of shards at most; an endpoint that never ends a listing must not fill
// the memory.
constexpr std::size_t rows_max = 1'000'000;
constexpr std::size_t pages_max = 10'000;

// A table that is there and just as soon gone again is not made for ever.
constexpr int makings_max = 2;

constexpr const char* missing_table = "ResourceNotFoundException";
constexpr const char* condition_failed = "ConditionalCheckFailedException";

result<std::monostate> unread(std::string_view /*body*/) {
    return std::monostate{};
}

template <class Row>
struct rows_page {
    std::vector<Row> rows;
    item next;
};

error in_words(aws::api_failure failure, std::string_view operation, const lease_table_name& where) {
    auto why = std::move(failure.why);
    const bool reads = operation == "Query" || operation == "GetItem";
    why.detail =
        fmt::format("cannot {} the leases in {}: {}", reads ? "read" : "write", where.shown, why.detail);
    if (failure.type == "AccessDeniedException") why.detail += fmt::format("; allow dynamodb:{}", operation);
    return why;
}

}  // namespace

struct dynamodb_lease_store::impl {
    impl(host& h, std::unique_ptr<aws::api> service, dynamodb_lease_store_options given)
        : home(h),
          options(std::move(given)),
          client(h, std::move(service), options.request_timeout),
          table(h, client, options.where, options.table_timeout) {}

    /// As `table_client::call`, on a table that is made when it is missing.
    template <class T, class Decode>
    void run(
        table_client::request what,
        Decode decode,
        std::function<void(table_client::outcome<T>)> done,
        int makings = 0
    );

    template <class Row>
    struct listing {
        std::string partition;
        result<Row> (*decode)(const item&, std::string_view);
        completion<std::vector<Row>> done;
        std::vector<Row> rows;
        std::size_t pages{0};
    };
    template <class Row>
    void list(std::shared_ptr<listing<Row>> of, const item& after);

    /// Sends a write whose condition may not hold. `own`: its mark, when it leaves one.
    void change(table_client::request what, std::optional<write_id> own, completion<void> done);

    [[nodiscard]] aws::api_failure table_is_gone() const;

    host& home;
    dynamodb_lease_store_options options;
    table_client client;
    lease_table table;
    bool used{false};  // then it is not made again: the group would skip, or do again, what it had
};

aws::api_failure dynamodb_lease_store::impl::table_is_gone() const {
    aws::api_failure gone;
    gone.type = missing_table;
    gone.why = error{
        errc::not_found,
        retry_advice::after_delay,
        false,
        fmt::format(
            "the table of {}, which this process has used, is gone: restore it under its name; to begin anew "
            "instead, stop all workers of the group first",
            options.where.shown
        )};
    return gone;
}

template <class T, class Decode>
void dynamodb_lease_store::impl::run(
    table_client::request what, Decode decode, std::function<void(table_client::outcome<T>)> done, int makings
) {
    client.call<T>(what, decode, [this, what, decode, done, makings](table_client::outcome<T> outcome) {
        if (outcome) {
            used = true;
            return done(std::move(outcome));
        }
        auto& failure = outcome.error();
        if (failure.type == missing_table && used) return done(tl::unexpected(table_is_gone()));
        if (failure.type == missing_table && makings < makings_max) {
            return table.ensure([this, what, decode, done, makings](const result<void>& ready) {
                if (ready) return run<T>(what, decode, done, makings + 1);
                aws::api_failure why;
                why.why = ready.error();
                done(tl::unexpected(std::move(why)));
            });
        }
        if (failure.type != "ValidationException") return done(std::move(outcome));
        table.look_at_keys([done, failure](std::optional<error> wrong) mutable {
            if (wrong) failure.why = std::move(*wrong);
            done(tl::unexpected(std::move(failure)));
        });
    });
}

template <class Row>
void dynamodb_lease_store::impl::list(std::shared_ptr<listing<Row>> of, const item& after) {
    const auto decode = [decode_row = of->decode,
                         where = options.where.shown](std::string_view body) -> result<rows_page<Row>> {
        auto found = dynamodb::read_query(body);
        if (!found) return tl::unexpected(std::move(found.error()));
        rows_page<Row> page{{}, std::move(found->next)};
        page.rows.reserve(found->items.size());
        for (const auto& one : found->items) {
            auto row = decode_row(one, where);
            if (!row) return tl::unexpected(std::move(row.error()));
            page.rows.push_back(std::move(*row));
        }
        return page;
    };
    run<rows_page<Row>>(
        {"Query", dynamodb::query(options.where.table, lease_items::all_in(of->partition), after)},
        decode,
        [this, of](table_client::outcome<rows_page<Row>> page) {
            if (!page) {
                return of->done(tl::unexpected(in_words(std::move(page.error()), "Query", options.where)));
            }
            std::move(page->rows.begin(), page->rows.end(), std::back_inserter(of->rows));
            if (page->next.empty()) return of->done(std::move(of->rows));
            if (of->rows.size() > rows_max || ++of->pages >= pages_max) {
                return of->done(fail(
                    errc::corrupt,
                    fmt::format(
                        "{} lists more than {} rows, or {} pages, of one group; check the endpoint",
                        options.where.shown,
                        rows_max,
                        pages_max
                    ),
                    retry_advice::after_delay
                ));
            }
            list<Row>(of, page->next);
        }
    );
}

void dynamodb_lease_store::impl::change(
    table_client::request what, std::optional<write_id> own, completion<void> done
) {
    run<std::monostate>(
        what,
        unread,
        [this, own, operation = what.operation, done](table_client::outcome<std::monostate> outcome) {
            if (outcome) return done({});
            auto& failure = outcome.error();
            if (failure.type != condition_failed) {
                return done(tl::unexpected(in_words(std::move(failure), operation, options.where)));
            }
            // A request that was sent twice, by a connection that broke, is refused by its own effect.
            const auto found = dynamodb::refused_item(failure.body);
            if (found && own && lease_items::written_by(*found, *own)) return done({});
            done(fail(errc::conflict, "the row is not as the writer believed; read it again and decide anew")
            );
        }
    );
}

dynamodb_lease_store::dynamodb_lease_store(
    host& home, std::unique_ptr<aws::api> service, dynamodb_lease_store_options options
)
    : impl_(std::make_unique<impl>(home, std::move(service), std::move(options))) {}

dynamodb_lease_store::~dynamodb_lease_store() = default;

void dynamodb_lease_store::list_workers(completion<std::vector<worker_row>> done) {
    impl_->list<worker_row>(
        std::make_shared<impl::listing<worker_row>>(impl::listing<worker_row>{
            lease_items::workers_of(impl_->options.group),
            lease_items::read_listed_worker,
            std::move(done),
            {}}),
        {}
    );
}

void dynamodb_lease_store::list_shards(completion<std::vector<shard_row>> done) {
    impl_->list<shard_row>(
        std::make_shared<impl::listing<shard_row>>(impl::listing<shard_row>{
            lease_items::shards_of(impl_->options.group), lease_items::read_listed_shard, std::move(done), {}}
        ),
        {}
    );
}

void dynamodb_lease_store::read(lease_key key, completion<std::optional<lease_row>> done) {
    const auto& where = impl_->options.where;
    const auto decode = [key,
                         shown = where.shown](std::string_view body) -> result<std::optional<lease_row>> {
        const auto found = dynamodb::read_get_item(body);
        if (!found) return tl::unexpected(found.error());
        if (!*found) return std::nullopt;
        const auto as_row = [](auto row) { return std::optional<lease_row>(std::move(row)); };
        if (std::holds_alternative<incarnation>(key))
            return lease_items::read_worker(**found, shown).map(as_row);
        if (std::holds_alternative<shard_id>(key)) return lease_items::read_shard(**found, shown).map(as_row);
        return lease_items::read_group(**found, shown).map(as_row);
    };
    impl_->run<std::optional<lease_row>>(
        {"GetItem", dynamodb::get_item(where.table, lease_items::key_of(impl_->options.group, key))},
        decode,
        [&where, done = std::move(done)](table_client::outcome<std::optional<lease_row>> row) {
            if (row) return done(std::move(*row));
            done(tl::unexpected(in_words(std::move(row.error()), "GetItem", where)));
        }
    );
}

void dynamodb_lease_store::write(lease_row row, std::optional<version> expected, completion<void> done) {
    if (expected) MILLRACE_ASSERT(version_of(row).value() == expected->value() + 1);
    const auto own = std::visit([](const auto& one) { return one.write_id; }, row);
    const bool registers = !expected && std::holds_alternative<worker_row>(row);
    const auto made =
        lease_items::update_of(impl_->options.group, row, expected, impl_->client.service_time());
    impl_->change(
        {"UpdateItem", dynamodb::update_item(impl_->options.where.table, made), false},
        own,
        [this, registers, done = std::move(done)](result<void> outcome) {
            if (outcome && registers) impl_->table.let_rows_expire();
            done(std::move(outcome));
        }
    );
}

void dynamodb_lease_store::remove(lease_key key, version expected, completion<void> done) {
    const auto& options = impl_->options;
    impl_->change(
        {"DeleteItem",
         dynamodb::delete_item(
             options.where.table,
             lease_items::key_of(options.group, key),
             lease_items::has_version(key, expected)
         ),
         false},
        std::nullopt,
        std::move(done)
    );
}

namespace {

/// All items of a partition, one after the other; waits for the service.
result<void> each_item(
    aws::api& service,
    const lease_table_name& where,
    const dynamodb::equals& partition,
    const std::function<void(const item&)>& take
) {
    item after;
    for (std::size_t pages = 0; pages < pages_max; ++pages) {
        std::promise<tl::expected<aws::api_reply, aws::api_failure>> answer;
        service.send(
            {dynamodb::target_of("Query"),
             dynamodb::content_type,
             dynamodb::query(where.table, partition, after)},
            [&answer](tl::expected<aws::api_reply, aws::api_failure> reply) {
                answer.set_value(std::move(reply));
            }
        );
        auto reply = answer.get_future().get();
        if (!reply) return tl::unexpected(in_words(std::move(reply.error()), "Query", where));
        auto page = dynamodb::read_query(reply->body);
        if (!page) return tl::unexpected(std::move(page.error()));
        for (const auto& one : page->items)
            take(one);
        after = std::move(page->next);
        if (after.empty()) return {};
    }
    return fail(
        errc::corrupt,
        fmt::format("{} lists more than {} pages; check the endpoint", where.shown, pages_max),
        retry_advice::after_delay
    );
}

}  // namespace

result<std::vector<std::string>> dynamodb_groups(
    aws::api& service, const lease_table_name& where, const std::string& stream
) {
    std::vector<std::string> names;
    const auto partition = lease_items::all_in(lease_items::groups_of(stream));
    const auto listed = each_item(service, where, partition, [&](const item& one) {
        if (auto name = lease_items::group_name_of(one)) names.push_back(std::move(*name));
    });
    if (!listed) return tl::unexpected(listed.error());
    return names;
}

result<std::vector<kept_row>> dynamodb_positions(
    aws::api& service, const lease_table_name& where, kept_by whom, const std::string& under
) {
    const auto text = [](const item& of, std::string_view name) -> std::string {
        const auto found = of.find(name);
        const auto* is = found == of.end() ? nullptr : std::get_if<std::string>(&found->second.is);
        return is == nullptr ? "" : *is;
    };
    const bool gosolines = whom == kept_by::gosoline;
    std::vector<kept_row> rows;
    const auto listed = each_item(service, where, {"namespace", {under}}, [&](const item& one) {
        if (gosolines) {
            rows.push_back({text(one, "resource"), text(one, "sequenceNumber"), text(one, "finishedAt")});
        } else {
            rows.push_back({text(one, "shard_id"), text(one, "sequence_number"), ""});
        }
    });
    if (listed) return rows;
    // As the service says it of a table whose key has other names.
    if (listed.error().detail.find("key schema") == std::string::npos) return tl::unexpected(listed.error());
    return fail(
        errc::invalid_config,
        fmt::format(
            "{} is no table of {} consumer: its partition key is not \"namespace\"; name the table in which "
            "that one kept its positions",
            where.shown,
            gosolines ? "gosoline's" : "harlow's"
        )
    );
}

}  // namespace millrace
