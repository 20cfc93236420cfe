#include "lease_table.hpp"

#include "lease_items.hpp"
#include "text/shell.hpp"

#include <chrono>
#include <utility>

#include <fmt/format.h>

namespace millrace {

namespace dynamodb = aws::dynamodb;
using lease_items::table_key;

namespace {

constexpr milliseconds look_pause{200};

result<std::monostate> unread(std::string_view /*body*/) {
    return std::monostate{};
}

std::string command(std::string_view verb, const lease_table_name& name) {
    const auto endpoint =
        name.endpoint.empty() ? "" : fmt::format(" --endpoint-url {}", shell_quoted(name.endpoint));
    return fmt::format(
        "aws dynamodb {} --region {}{} --table-name {}", verb, name.region, endpoint, name.table
    );
}

}  // namespace

std::string create_command(const lease_table_name& name) {
    return fmt::format(
        "{0} --billing-mode PAY_PER_REQUEST --attribute-definitions AttributeName={1},AttributeType=S "
        "AttributeName={2},AttributeType=S --key-schema AttributeName={1},KeyType=HASH "
        "AttributeName={2},KeyType=RANGE",
        command("create-table", name),
        table_key.partition,
        table_key.sort
    );
}

lease_table::lease_table(
    host& home, table_client& client, const lease_table_name& name, milliseconds patience
)
    : home_(home), client_(client), name_(name), patience_(patience) {}

lease_table::~lease_table() {
    if (timer_) home_.cancel(*timer_);
}

void lease_table::ensure(completion<void> done) {
    waiting_.push_back(std::move(done));
    if (waiting_.size() > 1) return;
    give_up_at_ = home_.now() + patience_;
    made_ = false;
    look();
}

void lease_table::finish(result<void> outcome) {
    for (auto& done : std::exchange(waiting_, {}))
        done(outcome);
}

void lease_table::look() {
    client_.call<dynamodb::table_description>(
        {"DescribeTable", dynamodb::describe_table(name_.table)},
        dynamodb::read_describe_table,
        alive_.guard([this](const auto& found) { looked(found); })
    );
}

void lease_table::looked(const table_client::outcome<dynamodb::table_description>& found) {
    if (found) {
        if (auto wrong = judge(*found)) return finish(tl::unexpected(std::move(*wrong)));
        if (found->active) return finish({});
        made_ = true;
        return again("it is still being made");
    }
    const auto& failure = found.error();
    if (failure.type == "ResourceNotFoundException") return made_ ? again("it does not show yet") : make();
    if (failure.why.code == errc::permission_denied) {
        return finish(tl::unexpected(not_allowed("dynamodb:DescribeTable", failure.why.detail)));
    }
    if (failure.why.retry != retry_advice::never) return again(failure.why.detail);
    finish(tl::unexpected(failure.why));
}

void lease_table::make() {
    client_.call<std::monostate>(
        {"CreateTable", dynamodb::create_table(name_.table, table_key)},
        unread,
        alive_.guard([this](const table_client::outcome<std::monostate>& created) {
            if (created) {
                home_.log().write(log_level::info, "state.table_created", {{"table", name_.shown}});
            } else if (created.error().why.code == errc::permission_denied) {
                return finish(tl::unexpected(not_allowed("dynamodb:CreateTable", created.error().why.detail))
                );
            } else if (created.error().type != "ResourceInUseException") {  // somebody else was first
                if (created.error().why.retry != retry_advice::never)
                    return again(created.error().why.detail);
                return finish(tl::unexpected(created.error().why));
            }
            made_ = true;
            look();
        })
    );
}

void lease_table::again(const std::string& why) {
    if (home_.now() >= give_up_at_) {
        return finish(fail(
            errc::unavailable,
            fmt::format(
                "the table was not ready within {} s: {}; it is waited for again",
                std::chrono::floor<std::chrono::seconds>(patience_).count(),
                why
            ),
            retry_advice::after_delay
        ));
    }
    timer_ = home_.call_at(home_.now() + look_pause, alive_.guard([this] {
        timer_.reset();
        look();
    }));
}

error lease_table::not_allowed(std::string_view action, const std::string& why) const {
    return {
        errc::permission_denied,
        retry_advice::after_delay,
        false,
        fmt::format(
            "the table is missing and cannot be made ({}); allow {}, or let somebody who may run: {}",
            why,
            action,
            create_command(name_)
        )};
}

std::optional<error> lease_table::judge(const dynamodb::table_description& found) const {
    const auto wanted = fmt::format("{} (S), {} (S)", table_key.partition, table_key.sort);
    if (found.key == wanted) return std::nullopt;
    return error{
        errc::invalid_config,
        retry_advice::never,
        false,
        fmt::format(
            "the table has the key {}, and the leases need {}; it belongs to something else, so name another "
            "one (a missing one is made)",
            found.key,
            wanted
        )};
}

void lease_table::look_at_keys(std::function<void(std::optional<error>)> done) {
    client_.call<dynamodb::table_description>(
        {"DescribeTable", dynamodb::describe_table(name_.table)},
        dynamodb::read_describe_table,
        alive_.guard([this, done = std::move(done)](const auto& found) {
            done(found ? judge(*found) : std::nullopt);
        })
    );
}

void lease_table::let_rows_expire() {
    if (std::exchange(expiry_seen_to_, true)) return;
    const auto updated = [this](const table_client::outcome<std::monostate>& outcome) {
        // Several workers that begin at once all ask; one of them is first.
        const bool done = outcome || outcome.error().message.find("already enabled") != std::string::npos;
        if (!done) warn_of_expiry(outcome.error().why.detail);
    };
    const auto described = [this, updated](const table_client::outcome<std::string>& by) {
        if (!by) return warn_of_expiry(by.error().why.detail);
        if (*by == lease_items::expiry) return;
        if (!by->empty()) return warn_of_expiry(fmt::format("it deletes by the attribute {}", *by));
        client_.call<std::monostate>(
            {"UpdateTimeToLive", dynamodb::update_time_to_live(name_.table, lease_items::expiry)},
            unread,
            alive_.guard(updated)
        );
    };
    client_.call<std::string>(
        {"DescribeTimeToLive", dynamodb::describe_time_to_live(name_.table)},
        dynamodb::read_describe_time_to_live,
        alive_.guard(described)
    );
}

void lease_table::warn_of_expiry(const std::string& why) {
    home_.log().write(
        log_level::warning,
        "state.no_expiry",
        {{"table", name_.shown},
         {"detail",
          fmt::format(
              "rows of workers that ended while no other ran are not deleted by themselves ({}); nothing "
              "else depends on it; allow dynamodb:DescribeTimeToLive and dynamodb:UpdateTimeToLive, or run: "
              "{} --time-to-live-specification Enabled=true,AttributeName={}",
              why,
              command("update-time-to-live", name_),
              lease_items::expiry
          )}}
    );
}

}  // namespace millrace
