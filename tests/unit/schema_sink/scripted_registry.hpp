/// A registry in the hands of a test: strict about what it is asked, and failing as it is told.
#pragma once

#include "port/host.hpp"
#include "registry_client.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace millrace::schema::test {

using registry::failure_kind;

/// What the registry holds and how it fares; outlives the client that relays use.
class registry_world {
public:
    explicit registry_world(host& home) : home_(home) {}

    /// Adds a version to a subject and returns its id.
    std::uint32_t put(
        const std::string& subject,
        const std::string& text,
        registry::schema_type type = registry::schema_type::avro,
        const std::string& guid = {}
    ) {
        auto& versions = subjects_[subject];
        registry::registered_schema made;
        made.id = ++last_id_;
        made.guid = guid;
        made.subject = subject;
        made.version = static_cast<std::int32_t>(versions.size()) + 1;
        made.schema = std::make_shared<registry::schema_text>(registry::schema_text{type, text, {}});
        versions.push_back(made);
        return made.id;
    }

    /// Every question fails so, until it is told otherwise.
    std::optional<failure_kind> fails{};
    /// Of a subject alone.
    std::map<std::string, failure_kind> fails_for{};
    /// Questions are not answered until `let_go`.
    bool silent{false};
    std::string silent_for{};  ///< Of a subject alone.
    nanoseconds latency{std::chrono::milliseconds{1}};

    void let_go() {
        silent = false;
        silent_for.clear();
        for (auto& each : std::exchange(held_, {}))
            each();
    }

    std::vector<std::string> asked;       ///< Each question, in words.
    std::vector<std::string> registered;  ///< Subjects.

    void ask(const registry::question& what, std::function<void(registry::answer)> done) {
        const auto words = registry::describe(what);
        asked.push_back(words);
        if (!under_way_.insert(words).second)
            throw std::logic_error("asked for " + words + " while it is asked for");
        auto reply = [this, what, words, done = std::move(done)] {
            under_way_.erase(words);
            done(answer_to(what));
        };
        const auto* const version = std::get_if<registry::ask_version>(&what);
        if (silent || (version != nullptr && version->subject == silent_for)) {
            held_.emplace_back(std::move(reply));
        } else {
            (void)home_.call_at(home_.now() + latency, std::move(reply));
        }
    }

private:
    static registry::answer failure(failure_kind kind, const std::string& words) {
        return tl::unexpected(registry::registry_failure{
            kind,
            {errc::unavailable, retry_advice::after_delay, false, "the registry failed at " + words},
            milliseconds{0}});
    }

    registry::answer answer_to(const registry::question& what) {
        const auto words = registry::describe(what);
        if (fails) return failure(*fails, words);
        if (const auto* text = std::get_if<registry::register_text>(&what)) {
            registered.push_back(text->subject);
            auto& versions = subjects_[text->subject];
            for (const auto& known : versions) {
                if (*known.schema == *text->schema) return known;
            }
            (void)put(text->subject, text->schema->text, text->schema->type);
            return versions.back();
        }
        const auto& version = std::get<registry::ask_version>(what);
        if (const auto found = fails_for.find(version.subject); found != fails_for.end())
            return failure(found->second, words);
        const auto found = subjects_.find(version.subject);
        if (found == subjects_.end()) return failure(failure_kind::no_such_subject, words);
        if (!version.version) return found->second.back();
        const auto index = static_cast<std::size_t>(*version.version) - 1;
        if (index >= found->second.size()) return failure(failure_kind::no_such_version, words);
        return found->second[index];
    }

    host& home_;
    std::map<std::string, std::vector<registry::registered_schema>> subjects_;
    std::uint32_t last_id_{100};
    std::set<std::string> under_way_;
    std::vector<std::function<void()>> held_;
};

class scripted_registry final : public registry::schema_registry {
public:
    explicit scripted_registry(registry_world& world) : world_(world) {}

    void ask(registry::question what, std::function<void(registry::answer)> done) override {
        world_.ask(what, alive_.guard(std::move(done)));
    }

private:
    registry_world& world_;
    lifetime alive_;
};

}  // namespace millrace::schema::test
