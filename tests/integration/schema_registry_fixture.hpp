/// A client of a schema registry and a source of schemas, on a host of the test's own thread.
#pragma once

#include "contract/loop_host.hpp"
#include "registry_client.hpp"
#include "schema_source.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace millrace::registry::test {

inline std::unique_ptr<registry_client> connected(host& home, registry_options options) {
    auto made = connect_registry(home, std::move(options));
    if (!made) throw std::runtime_error(made.error().detail);
    return std::move(*made);
}

/// Asks and turns the loop until the answer is there.
inline answer ask(millrace::test::loop_host& home, schema_registry& of, question what) {
    std::optional<answer> came;
    of.ask(std::move(what), [&](answer outcome) { came.emplace(std::move(outcome)); });
    if (came) throw std::runtime_error("answered inside the call");
    if (!home.run_until([&] { return came.has_value(); }, std::chrono::seconds{60}))
        throw std::runtime_error("no answer within a minute");
    return std::move(*came);
}

/// Turns the loop until what is asked again and again holds.
inline bool soon(
    millrace::test::loop_host& home,
    const std::function<bool()>& holds,
    std::chrono::milliseconds limit = std::chrono::seconds{30}
) {
    const auto end = home.now() + limit;
    while (!holds()) {
        if (home.now() > end) return false;
        home.run_for(milliseconds{5});
    }
    return true;
}

inline std::shared_ptr<const schema_text> text_of(
    std::string written, schema_type type = schema_type::avro, std::vector<schema_reference> references = {}
) {
    return std::make_shared<const schema_text>(schema_text{type, std::move(written), std::move(references)});
}

/// An Avro record with fields of the type int.
inline std::shared_ptr<const schema_text> record_of(
    const std::string& name, const std::vector<std::string>& fields
) {
    std::string written = R"({"type":"record","name":")" + name + R"(","fields":[)";
    for (std::size_t i = 0; i < fields.size(); ++i)
        written += (i == 0 ? "" : ",") + (R"({"name":")" + fields[i] + R"(","type":"int"})");
    return text_of(written + "]}");
}

/// What was told of a `want`, as it comes.
struct wanted {
    explicit wanted(schema_source& of, const std::string& subject, schema_choice choice = {}) {
        of.want(subject, choice, [kept = told](schema_outcome outcome) {
            kept->emplace(std::move(outcome));
        });
    }
    [[nodiscard]] bool is_told() const { return told->has_value(); }
    [[nodiscard]] const schema_outcome& outcome() const { return told->value(); }

    std::shared_ptr<std::optional<schema_outcome>> told = std::make_shared<std::optional<schema_outcome>>();
};

}  // namespace millrace::registry::test
