#include "kinesis_group_faults.hpp"

#include "support/services.hpp"

#include <algorithm>
#include <csignal>
#include <stdexcept>
#include <thread>
#include <utility>

namespace millrace::e2e {

namespace {

using namespace std::chrono_literals;

constexpr auto reply_limit = 3s;
constexpr auto short_silence = 1500ms;  // heartbeats go on in time
constexpr auto beyond_the_lease = 1500ms;
constexpr auto long_enough_for_a_read = 300ms;  // of each shard

/// While the store does not answer, handlers go on until the lease ends, and nothing is written.
constexpr std::uint64_t repeats_of_an_outage = 2'000;

class dynamodb_store final : public private_store {
public:
    std::unique_ptr<group_state> state(const group_name& of) override {
        return dynamodb_state(server_.endpoint(), of);
    }
    void crash() override {
        server_.kill();
        server_.start();
    }
    void restart() override { crash(); }

private:
    support::private_dynamodb server_;
};

class postgres_store final : public private_store {
public:
    std::unique_ptr<group_state> state(const group_name& of) override {
        return postgres_state(server_.url(), of);
    }
    void crash() override {
        server_.stop_immediately();
        server_.start();
    }
    void restart() override { server_.restart(); }

private:
    support::private_postgres server_;
};

}  // namespace

std::unique_ptr<private_store> make_private_store(const std::string& kind) {
    if (kind == in_postgres) return std::make_unique<postgres_store>();
    return std::make_unique<dynamodb_store>();
}

kinesis_ground::kinesis_ground(const std::string& kind)
    : store(make_private_store(kind)),
      state(store->state({"orders", kinesis_group_name})),
      to_kinesis(kinesis.port(), support::fault_proxy::ending::close),
      to_store(state->port()),
      load({.region = "eu-west-1", .stream = "orders", .endpoint = kinesis.endpoint()}, {}),
      workers({.stream = load.url(to_kinesis.port()), .state = state->url(to_store.port())}),
      watch(workers.deliveries(), *state) {}

const std::vector<kinesis_faults::fault>& kinesis_faults::all() {
    static const std::vector<fault> list{
        {"workers killed", &kinesis_faults::kill_worker, 6},
        {"times all killed", &kinesis_faults::kill_all, 1},
        {"workers paused", &kinesis_faults::pause_worker, 3},
        {"workers stopped", &kinesis_faults::stop_worker, 4},
        {"splits", &kinesis_faults::split, 5},
        {"merges", &kinesis_faults::merge, 4},
        {"changes of the shard count", &kinesis_faults::scale, 3},
        {"crashes of the store", &kinesis_faults::crash_store, 1},
        {"restarts of the store", &kinesis_faults::restart_store, 1},
        {"cuts to the store", &kinesis_faults::cut_store, 2},
        {"lost replies of the store", &kinesis_faults::lose_store_reply, 4},
        {"silences of the store", &kinesis_faults::silence_store, 1},
        {"silences past the lease", &kinesis_faults::silence_store_past_the_lease, 1},
        {"cuts to the stream", &kinesis_faults::cut_stream, 2},
        {"lost replies of the stream", &kinesis_faults::lose_stream_reply, 2},
        {"silences of the stream", &kinesis_faults::silence_stream, 1},
    };
    return list;
}

kinesis_faults::kinesis_faults(kinesis_ground& ground, std::uint32_t seed) : ground_(ground), random_(seed) {
    for (const auto& one : all())
        deck_.insert(deck_.end(), static_cast<std::size_t>(one.times), &one);
    std::shuffle(deck_.begin(), deck_.end(), random_);
}

bool kinesis_faults::next() {
    if (deck_.empty()) return false;
    const auto& one = *deck_.back();
    deck_.pop_back();
    if ((this->*one.act)()) ++counts_[one.name];
    return true;
}

std::string kinesis_faults::counts() const {
    std::string text;
    for (const auto& one : all()) {
        const auto found = counts_.find(one.name);
        if (found == counts_.end()) continue;
        text += (text.empty() ? "" : ", ") + std::to_string(found->second) + " " + one.name;
    }
    return text;
}

template <class F>
bool kinesis_faults::disturb(const std::string& worker, std::uint64_t repeats, F act) {
    const auto from = ground_.watch.now();
    const bool done = act();
    const auto to = ground_.watch.now();
    ground_.watch.with([&](auto& check) { check.disturbed({worker, from, to, repeats}); });
    return done;
}

/// Under its name or another, on this machine or another.
void kinesis_faults::start_somewhere(std::size_t index) {
    auto name = ground_.workers.members()[index].name;
    if (pick(2) == 0)
        name = name.substr(0, std::string("worker-1").size()) + "-" + std::to_string(++renamed_);
    ground_.workers.start_again(index, name, pick(2) == 0 ? machine::same : machine::another);
}

bool kinesis_faults::kill_worker() {
    const auto index = pick(ground_.workers.members().size());
    disturb(ground_.workers.members()[index].name, ground_.workers.options().repeats_of_a_crash(), [&] {
        ground_.workers.kill(index);
        return true;
    });
    start_somewhere(index);
    return true;
}

bool kinesis_faults::kill_all() {
    auto& members = ground_.workers.members();
    disturb("", ground_.workers.options().repeats_of_a_crash(), [&] {
        for (std::size_t i = 0; i < members.size(); ++i)
            ground_.workers.kill(i);
        return true;
    });
    for (std::size_t i = 0; i < members.size(); ++i)
        start_somewhere(i);
    return true;
}

/// With replies in its sockets, which it finds when it wakes.
bool kinesis_faults::pause_worker() {
    auto& one = ground_.workers.members()[pick(ground_.workers.members().size())];
    return disturb(one.name, ground_.workers.options().repeats_of_a_crash(), [&] {
        ground_.to_kinesis.hold_replies();
        std::this_thread::sleep_for(long_enough_for_a_read);
        one.process.signal(SIGSTOP);
        ground_.to_kinesis.release();
        std::this_thread::sleep_for(ground_.workers.options().lease + beyond_the_lease);
        one.process.signal(SIGCONT);
        return true;
    });
}

bool kinesis_faults::stop_worker() {
    const auto index = pick(ground_.workers.members().size());
    const auto name = ground_.workers.members()[index].name;
    const auto status = ground_.workers.stop(index);
    if (!status) throw std::runtime_error(name + " did not end after SIGTERM");
    if (*status != 0) throw std::runtime_error(name + " ended by " + std::to_string(*status));
    start_somewhere(index);
    return true;
}

bool kinesis_faults::crash_store() {
    return disturb("", repeats_of_an_outage, [&] {
        ground_.store->crash();
        return true;
    });
}

bool kinesis_faults::restart_store() {
    return disturb("", repeats_of_an_outage, [&] {
        ground_.store->restart();
        return true;
    });
}

bool kinesis_faults::cut_store() {
    return disturb("", repeats_of_an_outage, [&] {
        ground_.to_store.cut();
        return true;
    });
}

bool kinesis_faults::lose_store_reply() {
    return disturb("", repeats_of_an_outage, [&] {
        ground_.to_store.lose_reply(pick(2) == 0 ? "UpdateItem" : "");
        return ground_.to_store.lost_reply(reply_limit);
    });
}

bool kinesis_faults::silence_store() {
    return disturb("", repeats_of_an_outage, [&] {
        ground_.to_store.hold();
        std::this_thread::sleep_for(short_silence);
        ground_.to_store.release();
        return true;
    });
}

/// A shard ends meanwhile, and nobody can write it down.
bool kinesis_faults::silence_store_past_the_lease() {
    return disturb("", repeats_of_an_outage, [&] {
        ground_.to_store.hold();
        if (!split()) merge();
        std::this_thread::sleep_for(ground_.workers.options().lease + beyond_the_lease);
        ground_.to_store.release();
        return true;
    });
}

bool kinesis_faults::cut_stream() {
    ground_.to_kinesis.cut();
    return true;
}

bool kinesis_faults::lose_stream_reply() {
    ground_.to_kinesis.lose_reply(pick(2) == 0 ? "GetRecords" : "");
    return ground_.to_kinesis.lost_reply(reply_limit);
}

bool kinesis_faults::silence_stream() {
    ground_.to_kinesis.hold();
    std::this_thread::sleep_for(short_silence);
    ground_.to_kinesis.release();
    return true;
}

}  // namespace millrace::e2e
