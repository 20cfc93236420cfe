#include "postgres_kafka_shop.hpp"

#include <stdexcept>
#include <utility>

#include <gtest/gtest.h>

namespace millrace::e2e {

namespace {

constexpr const char* program = MILLRACE_PROGRAM;
constexpr std::chrono::seconds command_limit{90};

std::string make_database(support::sql_connection& server, const std::string& name) {
    server.execute("CREATE DATABASE " + name);
    auto url = support::services().postgres;
    return url.replace(url.rfind('/') + 1, std::string::npos, name);
}

}  // namespace

postgres_kafka_shop::postgres_kafka_shop(const std::string& table)
    : url_(make_database(server_, database_)), sql_(url_) {
    if (!table.empty()) sql_.execute(table);
    outbox({"init"});
}

postgres_kafka_shop::~postgres_kafka_shop() {
    try {
        server_.execute("DROP DATABASE " + database_ + " WITH (FORCE)");
    } catch (const support::sql_error& problem) {
        ADD_FAILURE() << problem.what();
    }
}

std::string postgres_kafka_shop::topic(const support::kafka_settings& settings, int partitions) {
    auto name = support::unique_name("proof");
    admin_.create_topic(name, partitions, settings);
    return name;
}

void postgres_kafka_shop::put(
    const std::string& topic, const std::string& key, const std::string& text, int bytes
) {
    sql_.query(
        "SELECT outbox_put($1, convert_to($2, 'UTF8'), convert_to(rpad($3 || ' ', greatest($4::int, "
        "length($3)), 'x'), 'UTF8'))",
        {topic, key, text, std::to_string(bytes)}
    );
}

void postgres_kafka_shop::put_each(
    const std::string& topic, const std::string& prefix, int first, int last, int bytes
) {
    sql_.query(
        "INSERT INTO outbox (topic, key, value) SELECT $1, convert_to($2 || n, 'UTF8'), convert_to(rpad(n || "
        "' ', greatest($5::int, length(n::text)), 'x'), 'UTF8') FROM generate_series($3::int, $4::int) n",
        {topic, prefix, std::to_string(first), std::to_string(last), std::to_string(bytes)}
    );
}

std::vector<std::string> postgres_kafka_shop::relay_command(const std::vector<std::string>& options) const {
    std::vector<std::string> command{
        program, "relay", "--outbox", url_, "--sink", "kafka://" + support::services().kafka};
    command.insert(command.end(), options.begin(), options.end());
    return command;
}

support::process postgres_kafka_shop::start_relay(const std::vector<std::string>& options) const {
    const auto log_file = folder_.path() / "log";
    return support::process{
        relay_command(options), {.input = {}, .output = log_file, .errors = log_file, .environment = {}}};
}

support::command_result postgres_kafka_shop::relay_once(const std::vector<std::string>& options) const {
    auto command = relay_command(options);
    command.emplace_back("--once");
    return support::run(command, std::string{}, command_limit);
}

std::string postgres_kafka_shop::outbox(std::vector<std::string> verb_and_options) const {
    std::vector<std::string> command{program, "outbox"};
    command.insert(command.end(), verb_and_options.begin(), verb_and_options.end());
    command.insert(command.end(), {"--outbox", url_});
    const auto done = support::run(command);
    if (done.status != 0) throw std::runtime_error("millrace outbox: " + done.errors);
    return done.output;
}

bool postgres_kafka_shop::empties(std::chrono::seconds limit) {
    return support::eventually(limit, [this] { return waiting() == 0; });
}

std::vector<std::string> postgres_kafka_shop::values(const std::string& topic, const std::string& key) const {
    std::vector<std::string> all;
    for (const auto& record : records(topic)) {
        if (record.key != key) continue;
        const auto value = record.value.value_or("");
        all.push_back(value.substr(0, value.find(' ')));
    }
    return all;
}

}  // namespace millrace::e2e
