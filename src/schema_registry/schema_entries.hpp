/// What the cache of schemas holds, within its limits: entries in the order of their last use, and their
/// texts.
///
/// Part of `schema_cache`, which decides what happens to an entry. No thread safety.
#pragma once

#include "retry/backoff.hpp"
#include "schema_cache.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace millrace::registry {

/// One choice of a subject.
struct cache_entry {
    enum class stage : std::uint8_t { idle, queued, asking };

    std::string subject;
    schema_choice choice;
    backoff pace;
    std::shared_ptr<const schema_text> given{};  ///< Of a choice by text.

    std::shared_ptr<const registered_schema> answer{};
    mono_time answered_at{};
    schema_pointer resolved{};  ///< Maybe of the answer before.

    stage now_is{stage::idle};
    std::optional<registry_failure> failed{};  ///< The latest request, or its references.
    mono_time try_at{};                        ///< When to ask again after that.
    std::optional<std::multimap<mono_time, cache_entry*>::iterator> retry{};  ///< Among those to come.

    std::vector<schema_cache::waiter> waiters{};
    std::vector<cache_entry*>
        dependents{};                  ///< Entries whose schemas need this one, for as long as they wait.
    std::size_t missing{0};            ///< How many entries have this one among their dependents.
    std::vector<cache_entry*> uses{};  ///< What its schema needs; held so that it stays.
    std::size_t holders{0};            ///< Entries that hold this one so.

    std::size_t charged{0};
    bool shares_text{false};
    std::list<cache_entry>::iterator self{};

    [[nodiscard]] bool is_waited_for() const { return !waiters.empty() || !dependents.empty(); }
    [[nodiscard]] bool may_be_dropped() const {
        return now_is == stage::idle && !retry && !is_waited_for() && missing == 0 && holders == 0;
    }
};

/// Keeps an entry while others are made, which drops some.
class held_entry {
public:
    explicit held_entry(cache_entry& which) : which_(which) { ++which_.holders; }
    ~held_entry() { --which_.holders; }
    held_entry(const held_entry&) = delete;
    held_entry& operator=(const held_entry&) = delete;

private:
    cache_entry& which_;
};

class schema_entries {
public:
    explicit schema_entries(const schema_cache_options& options) : options_(options) {}

    /// Null when there is none; otherwise it counts as used now.
    [[nodiscard]] cache_entry* find(std::string_view subject, schema_choice choice);

    /// Drops another one when there are too many; null when none may be dropped.
    [[nodiscard]] cache_entry* make(std::string_view subject, schema_choice choice);

    /// True when it is not the answer that was there.
    bool set_answer(cache_entry& of, registered_schema answer, mono_time now);
    void forget_answer(cache_entry& of);
    void set_failed(cache_entry& of, std::optional<registry_failure> failure);

    void hold(cache_entry& by, cache_entry& what);
    void release_all(cache_entry& by);

    /// Drops what was used longest ago until the bytes fit, or nothing more may be dropped.
    void trim();

    template <class F>
    void for_each(F what) {
        for (auto& each : entries_)
            what(each);
    }

    [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
    [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
    [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_; }

private:
    /// Views into the entry.
    struct key {
        std::string_view subject;
        schema_choice choice;
        bool operator==(const key&) const = default;
    };
    struct key_hash {
        std::size_t operator()(const key& of) const noexcept {
            const auto choice = (static_cast<std::uint64_t>(of.choice.how) << 32U) | of.choice.number;
            return std::hash<std::string_view>()(of.subject) ^ (choice * 0x9e3779b97f4a7c15ULL);
        }
    };
    /// A text that entries share, by the registry's id.
    struct shared_text {
        std::shared_ptr<const schema_text> text;
        std::size_t entries{0};
    };

    [[nodiscard]] bool drop_one();
    void drop(std::list<cache_entry>::iterator which);
    void charge(cache_entry& of);
    void share_text(cache_entry& of, registered_schema& answer);

    const schema_cache_options& options_;
    std::list<cache_entry> entries_;  // the one used last in front
    std::unordered_map<key, cache_entry*, key_hash> index_;
    std::unordered_map<std::uint32_t, shared_text> texts_;
    std::size_t bytes_{0};
    std::uint64_t dropped_{0};
};

}  // namespace millrace::registry
