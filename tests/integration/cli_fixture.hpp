/// Runs the program as a user would: real processes, a folder of its own,
/// messages and exit statuses.
#pragma once

#include "support/process.hpp"
#include "support/temporary_folder.hpp"

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::cli {

using testing::AllOf;
using testing::HasSubstr;

struct Cli : testing::Test {
    using words = std::vector<std::string>;

    /// The program with these words, standard input, and its end.
    static support::command_result millrace(words command, const std::string& input = {}) {
        command.insert(command.begin(), MILLRACE_PROGRAM);
        return support::run(command, input);
    }

    /// As nobody when this is the superuser, whom no mode of a file stops.
    static support::command_result millrace_unprivileged(words command) {
        command.insert(command.begin(), MILLRACE_PROGRAM);
        support::spawn_options options;
        options.unprivileged = true;
        return support::run(command, std::move(options));
    }

    /// A process that runs on: its output in the file `name`.out, its messages in `name`.err.
    [[nodiscard]] support::process start(words command, const std::string& name) const {
        command.insert(command.begin(), MILLRACE_PROGRAM);
        support::spawn_options options;
        options.output = path(name + ".out");
        options.errors = path(name + ".err");
        return support::process(command, options);
    }
    [[nodiscard]] std::string said(const std::string& name) const {
        return support::read_file(path(name + ".err"));
    }
    [[nodiscard]] std::string printed(const std::string& name) const {
        return support::read_file(path(name + ".out"));
    }
    /// Waits until it has said this.
    [[nodiscard]] bool says(const std::string& name, const std::string& text) const {
        return support::eventually(std::chrono::seconds{15}, [&] {
            return said(name).find(text) != std::string::npos;
        });
    }

    /// The port of a process that was started with `--admin 127.0.0.1:0`, once it listens; else empty.
    [[nodiscard]] std::string admin_port(const std::string& name) const {
        if (!says(name, "port=")) return {};
        const auto text = said(name);
        const auto at = text.find("port=") + 5;
        return text.substr(at, text.find_first_not_of("0123456789", at) - at);
    }
    /// The whole reply of the admin server.
    [[nodiscard]] std::string get(const std::string& port, const std::string& page) const {
        return shell(
                   "exec 3<>/dev/tcp/127.0.0.1/" + port + "; printf 'GET " + page +
                   " HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n' >&3; cat <&3"
        )
            .output;
    }

    /// Output of a command that must succeed.
    static std::string ok(words command, const std::string& input = {}) {
        const auto done = millrace(std::move(command), input);
        EXPECT_EQ(done.status, 0) << done.errors;
        return done.output;
    }

    [[nodiscard]] std::string path(const std::string& name) const { return folder.file(name); }
    [[nodiscard]] std::string outbox() const { return "sqlite:" + path("shop.db"); }
    [[nodiscard]] std::string sink() const { return "local:" + path("streams.db"); }
    [[nodiscard]] std::string stream(const std::string& name = "orders") const { return sink() + "/" + name; }
    [[nodiscard]] std::string state() const { return "sqlite:" + path("state.db"); }

    void write(const std::string& name, const std::string& text) const {
        std::ofstream(path(name), std::ios::binary) << text;
    }

    void make_outbox() const { ok({"outbox", "init", "--outbox", outbox()}); }
    void make_stream(const std::string& shards = "1") const {
        ok({"stream", "create", "--stream", stream(), "--shards", shards});
    }

    /// Records v0, v1, ... of the key k.
    void put_values(int count) const {
        std::string lines;
        for (int i = 0; i < count; ++i)
            lines += "{\"key\":\"k\",\"value\":\"v" + std::to_string(i) + "\"}\n";
        ok({"stream", "put", "--stream", stream()}, lines);
    }

    /// The shell, for pipes and damage of files. The program is `$M`.
    [[nodiscard]] support::command_result shell(const std::string& script) const {
        return support::run(
            {"/bin/bash", "-c", "M='" MILLRACE_PROGRAM "'; cd '" + folder.path().string() + "'; " + script}
        );
    }

    [[nodiscard]] words relay_once() const {
        return {"relay", "--outbox", outbox(), "--sink", sink(), "--once", "--log-level", "warning"};
    }
    [[nodiscard]] words consume(words more = {"--print", "--idle-exit", "0.2"}) const {
        words command{
            "consume", "--stream", stream(), "--group", "g", "--state", state(), "--log-level", "warning"};
        command.insert(command.end(), more.begin(), more.end());
        return command;
    }

    support::temporary_folder folder;
};

}  // namespace millrace::cli
