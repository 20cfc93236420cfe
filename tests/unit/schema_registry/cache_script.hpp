/// A cache of schemas, its clock and its registry in the hands of a test, and what it did as lines of text.
#pragma once

#include "schema_cache.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace millrace::registry::test {

using lines = std::vector<std::string>;

inline schema_cache_options patient() {
    schema_cache_options options;
    options.latest_time = milliseconds{60'000};
    options.backoff_min = milliseconds{100};
    options.backoff_max = milliseconds{1'600};
    return options;
}

/// `n` is the id; the text is of `bytes`, and the same for the same id.
inline registered_schema schema(
    std::uint32_t n,
    std::int32_t version,
    std::vector<schema_reference> references = {},
    std::size_t bytes = 10
) {
    auto text = std::make_shared<schema_text>();
    text->text = std::to_string(n);
    text->text.resize(bytes, 'x');
    text->references = std::move(references);
    registered_schema made;
    made.id = n;
    made.version = version;
    made.schema = std::move(text);
    return made;
}

inline schema_reference needs(const std::string& subject, std::int32_t version = 1) {
    return {subject, subject, version};
}

class cache_script {
public:
    explicit cache_script(schema_cache_options options = patient()) : cache(options) {}

    void at(milliseconds when) {
        now = mono_time{} + when;
        cache.tick(now);
    }

    /// Wakes the cache when it wants to be, until it does something; says how long that took.
    milliseconds sleep() {
        const auto before = now;
        do {
            const auto due = cache.wake_at();
            if (!due) throw std::logic_error("the cache has nothing to wake up for");
            now = std::max(now, *due);
            cache.tick(now);
        } while (!cache.has_actions());
        return std::chrono::ceil<milliseconds>(now - before);
    }

    void want(const std::string& subject, schema_cache::waiter who, schema_choice choice = {}) {
        std::shared_ptr<const schema_text> given;
        if (choice.how == schema_choice::by::text) given = std::make_shared<const schema_text>();
        cache.want(now, subject, choice, who, given);
    }

    /// "7" for the schema with that id, "7 stale", or why there is none.
    std::string find(const std::string& subject, schema_choice choice = {}) {
        const auto found = cache.find(now, subject, choice);
        if (found.schema) return std::to_string(found.schema->self->id) + (found.stale ? " stale" : "");
        return found.why == nullptr ? "not yet" : std::string(name_of(found.why->kind));
    }

    void answer(const std::string& asked, registered_schema what) {
        what.subject = asked.substr(0, asked.find(' '));
        cache.answered(now, take(asked), std::move(what), ++random);
    }
    void fail(const std::string& asked, failure_kind kind, milliseconds retry_after = {}) {
        const error why{errc::unavailable, retry_advice::after_delay, false, "because of " + asked};
        cache.answered(now, take(asked), tl::unexpected(registry_failure{kind, why, retry_after}), ++random);
    }

    /// What it did since this was asked last.
    lines did() {
        look();
        return std::exchange(done_, {});
    }

    [[nodiscard]] std::size_t under_way() const { return asked_for_.size(); }

    schema_cache cache;
    mono_time now{};
    std::uint64_t random{42};
    std::map<schema_cache::waiter, schema_outcome> told;

private:
    void look() {
        for (const auto& each : cache.take_actions())
            done_.push_back(std::visit([&](const auto& what) { return line(what); }, each));
    }

    schema_cache::ticket take(const std::string& asked) {
        look();
        const auto at = asked_for_.find(asked);
        if (at == asked_for_.end()) throw std::logic_error("nobody asked for " + asked);
        const auto which = at->second;
        asked_for_.erase(at);
        return which;
    }

    static std::string name(const std::string& subject, schema_choice choice) {
        constexpr const char* how[] = {"latest", "v", "id", "text"};
        const std::string suffix =
            choice.how == schema_choice::by::latest ? "" : std::to_string(choice.number);
        return subject + " " + how[static_cast<std::size_t>(choice.how)] + suffix;
    }
    std::string line(const schema_cache::ask& what) {
        const auto asked = name(what.subject, what.choice);
        if (!asked_for_.emplace(asked, what.which).second) throw std::logic_error("asked twice for " + asked);
        return "ask " + asked;
    }
    std::string line(const schema_cache::tell& what) {
        if (!told.emplace(what.whom, what.outcome).second) throw std::logic_error("told twice");
        const auto how = what.outcome ? std::to_string((*what.outcome)->self->id)
                                      : std::string(name_of(what.outcome.error().kind));
        return "tell " + std::to_string(what.whom) + ": " + how;
    }
    static std::string line(const schema_cache::trouble_began& what) {
        return "trouble: " + std::string(name_of(what.failure.kind));
    }
    static std::string line(const schema_cache::trouble_ended& what) {
        const auto lasted = std::chrono::duration_cast<milliseconds>(what.lasted).count();
        return "trouble ended after " + std::to_string(lasted);
    }
    static std::string line(const schema_cache::stale_used& what) { return "stale: " + what.subject; }

    lines done_;
    std::map<std::string, schema_cache::ticket> asked_for_;
};

}  // namespace millrace::registry::test
