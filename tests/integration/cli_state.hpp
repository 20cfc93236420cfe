/// What the commands do with the state of a group, wherever it is kept.
#pragma once

#include "cli_fixture.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <set>
#include <string>

#include <boost/json.hpp>
#include <signal.h>

namespace millrace::cli {

struct CliState : Cli {
    explicit CliState(std::string state) : kept_in(std::move(state)) {}

    [[nodiscard]] words of_group(words first, const words& more = {}) const {
        first.insert(first.end(), {"--stream", stream(), "--group", "g", "--state", kept_in});
        first.insert(first.end(), more.begin(), more.end());
        return first;
    }
    void put(int records) const {
        std::string lines;
        for (int i = 0; i < records; ++i)
            lines += "{\"key\":\"k" + std::to_string(i) + "\",\"value\":\"v\"}\n";
        ok({"stream", "put", "--stream", stream()}, lines);
    }
    [[nodiscard]] std::size_t consumed() const {
        const auto out =
            ok(of_group({"consume"}, {"--print", "--idle-exit", "0.5", "--log-level", "warning"}));
        return static_cast<std::size_t>(std::count(out.begin(), out.end(), '\n'));
    }
    [[nodiscard]] boost::json::object status() const {
        return boost::json::parse(ok(of_group({"group", "status"}, {"--json"}))).as_object();
    }

    void resumes_where_it_was() const {
        make_stream("4");
        const auto early = millrace(of_group({"group", "status"}));
        EXPECT_EQ(early.status, 1) << early.output;
        EXPECT_THAT(early.errors, HasSubstr("at its first start"));
        put(40);
        EXPECT_EQ(consumed(), 40U);
        EXPECT_EQ(consumed(), 0U);
        put(5);
        EXPECT_EQ(consumed(), 5U);
        const auto now = status();
        EXPECT_EQ(now.at("workers").as_array().size(), 0U);
        EXPECT_EQ(now.at("shards").as_array().size(), 4U);
        ok(of_group({"group", "reset"}));
        EXPECT_EQ(consumed(), 45U);
    }

    /// Waits until so many workers share the four shards.
    [[nodiscard]] bool shared_by(std::size_t workers) const {
        return support::eventually(std::chrono::seconds{20}, [&] {
            const auto shown = millrace(of_group({"group", "status"}, {"--json"}));
            if (shown.status != 0) return false;  // too early
            const auto now = boost::json::parse(shown.output).as_object();
            std::set<std::string> owners;
            for (const auto& shard : now.at("shards").as_array()) {
                const auto& owner = shard.at("owner");
                if (!owner.is_string()) return false;
                owners.emplace(owner.as_string());
            }
            return now.at("workers").as_array().size() == workers && owners.size() == workers;
        });
    }

    void is_shared_by_workers() const {
        make_stream("4");
        put(8);
        auto one = start(of_group({"consume"}, {"--worker", "one"}), "one");
        ASSERT_TRUE(says("one", "session.started")) << said("one");
        auto two = start(of_group({"consume"}, {"--worker", "two"}), "two");
        EXPECT_TRUE(shared_by(2)) << boost::json::serialize(status());
        one.signal(SIGKILL);
        ASSERT_TRUE(one.wait(std::chrono::seconds{10}));
        EXPECT_TRUE(shared_by(1)) << boost::json::serialize(status());
        two.ask_to_end();
        const auto ended = two.wait(std::chrono::seconds{20});
        ASSERT_TRUE(ended);
        EXPECT_EQ(ended->status, 0) << said("two");
        EXPECT_EQ(status().at("workers").as_array().size(), 0U);
    }

    std::string kept_in;
};

}  // namespace millrace::cli
