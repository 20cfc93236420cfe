#include "kinesis_group_state.hpp"

#include "contract/dynamodb_fixture.hpp"
#include "support/private_servers.hpp"
#include "support/services.hpp"
#include "support/sql_connection.hpp"

#include <stdexcept>
#include <utility>

#include <boost/json.hpp>

namespace millrace::e2e {

namespace {

namespace json = boost::json;
using namespace std::chrono_literals;
using support::shard_sample;

std::string with_port(std::string url, std::uint16_t port) {
    const auto own = std::to_string(support::port_of(url));
    return url.replace(url.rfind(":" + own) + 1, own.size(), std::to_string(port));
}

class dynamodb final : public group_state {
public:
    dynamodb(std::string endpoint, const group_name& of)
        : endpoint_(std::move(endpoint)),
          partition_("shards/" + of.stream + "/" + of.group),
          client_(test::dynamodb_client(endpoint_)) {}

    [[nodiscard]] std::string url(std::uint16_t port) const override {
        return "dynamodb://us-east-1/" + table_ + "?endpoint=" + with_port(endpoint_, port);
    }
    [[nodiscard]] std::uint16_t port() const override { return support::port_of(endpoint_); }

    std::optional<std::vector<shard_sample>> sample() override {
        const aws::dynamodb::equals all{"pk", {partition_}};
        aws::api_request request{
            aws::dynamodb::target_of("Query"),
            aws::dynamodb::content_type,
            aws::dynamodb::query(table_, all, {})};
        request.timeout = 1s;
        std::promise<tl::expected<aws::api_reply, aws::api_failure>> answer;
        client_->send(std::move(request), [&answer](auto reply) { answer.set_value(std::move(reply)); });
        const auto reply = answer.get_future().get();
        if (!reply) return std::nullopt;
        const auto body = json::parse(reply->body).as_object();
        if (body.contains("LastEvaluatedKey")) throw std::runtime_error("the rows are more than a page");
        std::vector<shard_sample> rows;
        for (const auto& item : body.at("Items").as_array())
            rows.push_back(row_of(item.as_object()));
        return rows;
    }

private:
    static std::string text(const json::object& item, const char* name, const char* type = "S") {
        const auto* const found = item.if_contains(name);
        return found == nullptr ? std::string() : std::string(found->as_object().at(type).as_string());
    }
    static shard_sample row_of(const json::object& item) {
        shard_sample row;
        row.shard = text(item, "sk").substr(std::string("shard/").size());
        row.owner = text(item, "owner");
        row.epoch = std::stoull(text(item, "epoch", "N"));
        row.version = std::stoull(text(item, "version", "N"));
        row.finished = item.contains("finished_at");
        if (item.contains("sequence")) row.checkpoint = {text(item, "sequence")};
        if (const auto* const parents = item.if_contains("parents"); parents != nullptr)
            for (const auto& parent : parents->as_object().at("L").as_array())
                row.parents.push_back(text({{"name", parent}}, "name"));
        return row;
    }

    std::string endpoint_;
    std::string partition_;
    std::string table_ = support::unique_name("group");
    std::unique_ptr<aws::api> client_;
};

class postgres final : public group_state {
public:
    postgres(std::string database, group_name of) : database_(std::move(database)), of_(std::move(of)) {}

    [[nodiscard]] std::string url(std::uint16_t port) const override {
        return with_port(database_, port) + "?schema=" + schema_;
    }
    [[nodiscard]] std::uint16_t port() const override { return support::port_of(database_); }

    std::optional<std::vector<shard_sample>> sample() override {
        try {
            if (!sql_) sql_.emplace(database_);
            std::vector<shard_sample> rows;
            for (const auto& cells : sql_->query(select(), {of_.stream, of_.group}))
                rows.push_back(row_of(cells));
            return rows;
        } catch (const support::sql_error&) {
            sql_.reset();
            return std::nullopt;
        }
    }

private:
    [[nodiscard]] std::string select() const {
        return "SELECT shard, owner, epoch, version, sequence, finished_at IS NOT NULL, "
               "array_to_string(parents, ',') FROM " +
               schema_ + ".millrace_shard WHERE stream = $1 AND group_name = $2";
    }
    static shard_sample row_of(const support::sql_connection::row& cells) {
        shard_sample row;
        row.shard = cells.at(0).value();
        row.owner = cells.at(1).value();
        row.epoch = std::stoull(cells.at(2).value());
        row.version = std::stoull(cells.at(3).value());
        if (cells.at(4)) row.checkpoint = {*cells.at(4)};
        row.finished = cells.at(5) == "t";
        const auto& parents = cells.at(6).value();
        for (std::size_t at = 0; at < parents.size();) {
            const auto end = std::min(parents.find(',', at), parents.size());
            row.parents.push_back(parents.substr(at, end - at));
            at = end + 1;
        }
        return row;
    }

    std::string database_;
    group_name of_;
    std::string schema_ = support::unique_name("group");
    std::optional<support::sql_connection> sql_;
};

}  // namespace

std::unique_ptr<group_state> dynamodb_state(const std::string& endpoint, group_name of) {
    return std::make_unique<dynamodb>(endpoint, of);
}

std::unique_ptr<group_state> postgres_state(const std::string& database, group_name of) {
    return std::make_unique<postgres>(database, std::move(of));
}

}  // namespace millrace::e2e
