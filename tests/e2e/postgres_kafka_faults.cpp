#include "postgres_kafka_faults.hpp"

#include "support/sql_connection.hpp"

#include <algorithm>
#include <stdexcept>
#include <thread>
#include <utility>

namespace millrace::e2e {

namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr int partitions = 8;
constexpr auto broker_pause = 45s;
constexpr auto reply_limit = 3s;
const std::string the_leader =
    "SELECT w.worker FROM millrace_shard s JOIN millrace_worker w ON w.incarnation = s.owner WHERE s.shard = "
    "'outbox'";
const std::string its_backends =
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'millrace'";

/// Between a small and a large row of the writers, and below a batch.
const std::string low_limit = "20000";

}  // namespace

proving_ground::proving_ground(support::kafka_settings settings)
    : to_postgres(postgres.port()), kafka({}, to_kafka.port()), topic_settings(std::move(settings)) {
    to_kafka.lead_to(kafka.proxied_port());
    support::kafka_admin admin{kafka.bootstrap()};
    for (const auto& topic : topics)
        admin.create_topic(topic, partitions, topic_settings);
}

std::string proving_ground::outbox() const {
    return "postgresql://postgres@127.0.0.1:" + std::to_string(to_postgres.port()) + "/postgres";
}

std::string proving_ground::sink() const {
    return "kafka://127.0.0.1:" + std::to_string(to_kafka.port());
}

std::uint64_t undelivered(const proving_ground& ground) {
    support::sql_connection sql{ground.direct()};
    return static_cast<std::uint64_t>(
        sql.number("SELECT (SELECT count(*) FROM outbox) + (SELECT count(*) FROM millrace_dead)")
    );
}

bool drain(const proving_ground& ground, faults& with, std::chrono::seconds quiet_limit) {
    auto least = undelivered(ground);
    for (auto progress = clock::now(); least > 0 && clock::now() - progress < quiet_limit;) {
        std::this_thread::sleep_for(250ms);
        with.retry_dead();
        const auto left = undelivered(ground);
        if (left < least) progress = clock::now();
        least = std::min(least, left);
    }
    return least == 0;
}

faults::faults(proving_ground& ground, relay_fleet& relays, std::uint32_t seed)
    : ground_(ground), relays_(relays), random_(seed) {}

const std::vector<faults::fault>& faults::all() {
    static const std::vector<fault> list{
        {"relays killed", &faults::kill_relay, true, 6, 3},
        {"relays paused", &faults::pause_relay, true, 3, 1},
        {"relays stopped", &faults::stop_relay, false, 4, 2},
        {"restarts of PostgreSQL", &faults::restart_postgres, true, 1, 1},
        {"crashes of PostgreSQL", &faults::crash_postgres, true, 1, 0},
        {"ends of backends", &faults::end_backends, true, 2, 1},
        {"cuts to PostgreSQL", &faults::cut_postgres, true, 2, 1},
        {"lost replies of PostgreSQL", &faults::lose_postgres_reply, true, 3, 1},
        {"restarts of Kafka", &faults::restart_kafka, true, 1, 1},
        {"crashes of Kafka", &faults::crash_kafka, true, 1, 0},
        {"long pauses of Kafka", &faults::pause_kafka, true, 1, 0},
        {"cuts to Kafka", &faults::cut_kafka, true, 2, 1},
        {"lost replies of Kafka", &faults::lose_kafka_reply, true, 3, 1},
        {"spells of 2 % failed deliveries", &faults::fail_deliveries, true, 2, 1},
        {"refusals of rows", &faults::refuse_rows, true, 3, 1},
        {"denials of a topic", &faults::deny_topic, true, 2, 1},
    };
    return list;
}

void faults::shuffle(deck which) {
    deck_.clear();
    for (const auto& one : all()) {
        const int cards = which == deck::brief ? one.in_brief : one.in_everything;
        deck_.insert(deck_.end(), static_cast<std::size_t>(cards), &one);
    }
    std::shuffle(deck_.begin(), deck_.end(), random_);
}

bool faults::next() {
    if (deck_.empty()) return false;
    const auto& one = *deck_.back();
    deck_.pop_back();
    if (!(this->*one.act)()) return true;
    ++counts_[one.name];
    if (one.repeats) ++repeating_;
    return true;
}

std::uint64_t faults::done() const {
    std::uint64_t sum = 0;
    for (const auto& [name, count] : counts_)
        sum += count;
    return sum;
}

std::string faults::counts() const {
    std::string text;
    for (const auto& one : all()) {
        const auto found = counts_.find(one.name);
        if (found == counts_.end()) continue;
        text += (text.empty() ? "" : ", ") + std::to_string(found->second) + " " + one.name;
    }
    return text;
}

void faults::retry_dead() {
    const auto done = relays_.outbox(ground_.direct(), {"dead", "retry", "--all"});
    if (done.status != 0) throw std::runtime_error("outbox dead retry: " + done.errors);
}

std::optional<std::size_t> faults::leader() const {
    support::sql_connection sql{ground_.direct()};
    const auto rows = sql.query(the_leader);
    for (std::size_t i = 0; i < relays_.size(); ++i)
        if (!rows.empty() && rows[0].at(0) == relay_fleet::name(i)) return i;
    return std::nullopt;
}

std::size_t faults::victim() {
    auto chosen = pick(relays_.size());
    if (pick(2) == 0) chosen = leader().value_or(chosen);
    return chosen == spared_ ? (chosen + 1) % relays_.size() : chosen;
}

bool faults::kill_relay() {
    relays_.kill(victim());
    return true;
}

bool faults::pause_relay() {
    relays_.pause(victim());
    return true;
}

bool faults::stop_relay() {
    const auto status = relays_.restart(victim());
    if (!status) throw std::runtime_error("a relay did not end after SIGTERM");
    if (*status != 0) throw std::runtime_error("a relay ended by " + std::to_string(*status));
    return true;
}

bool faults::restart_postgres() {
    ground_.postgres.restart();
    return true;
}

bool faults::crash_postgres() {
    ground_.postgres.stop_immediately();
    ground_.postgres.start();
    return true;
}

bool faults::end_backends() {
    return support::sql_connection{ground_.direct()}.number(its_backends) > 0;
}

bool faults::cut_postgres() {
    ground_.to_postgres.cut();
    return true;
}

bool faults::lose_postgres_reply() {
    ground_.to_postgres.lose_reply(pick(2) == 0 ? "DELETE" : "");
    return ground_.to_postgres.lost_reply(reply_limit);
}

bool faults::restart_kafka() {
    ground_.kafka.restart();
    return true;
}

bool faults::crash_kafka() {
    ground_.kafka.kill();
    ground_.kafka.start();
    return true;
}

/// The relays are killed meanwhile: whoever leads next has not been answered once.
bool faults::pause_kafka() {
    ground_.kafka.pause();
    const auto end = clock::now() + broker_pause;
    std::this_thread::sleep_for(broker_pause / 4);
    kill_relay();
    std::this_thread::sleep_until(end);
    ground_.kafka.resume();
    ++repeating_;
    return true;
}

bool faults::cut_kafka() {
    ground_.to_kafka.cut();
    return true;
}

bool faults::lose_kafka_reply() {
    ground_.to_kafka.lose_reply("orders");
    return ground_.to_kafka.lost_reply(reply_limit);
}

bool faults::fail_deliveries() {
    ground_.to_kafka.lose_some(20);
    std::this_thread::sleep_for(5s);
    const auto failed = ground_.to_kafka.lost_reply(reply_limit);
    ground_.to_kafka.lose_some(0);
    return failed;
}

bool faults::refuse_rows() {
    support::kafka_admin admin{ground_.kafka.bootstrap()};
    auto settings = ground_.topic_settings;
    settings["max.message.bytes"] = low_limit;
    admin.configure_topic("orders", settings);
    std::this_thread::sleep_for(3s);
    admin.configure_topic("orders", ground_.topic_settings);
    retry_dead();
    return true;
}

bool faults::deny_topic() {
    support::kafka_admin admin{ground_.kafka.bootstrap()};
    admin.deny("payments", support::kafka_admin::operation::write);
    std::this_thread::sleep_for(3s);
    admin.allow_all("payments");
    return true;
}

}  // namespace millrace::e2e
