#include "schema_cache.hpp"

#include "assert.hpp"
#include "reference_walk.hpp"
#include "schema_entries.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <unordered_map>
#include <utility>

namespace millrace::registry {

using stage = cache_entry::stage;

struct schema_cache::impl {
    explicit impl(schema_cache_options given)
        : options(given), entries(options), trouble_pace(options.backoff_min, options.backoff_max) {}

    // What is known.
    [[nodiscard]] bool is_outdated(mono_time now, const cache_entry& of) const;
    [[nodiscard]] bool is_ready(mono_time now, const cache_entry& of) const;
    [[nodiscard]] bool may_be_stale(const cache_entry& of) const;
    void tell_stale(mono_time now, cache_entry& of);
    void note_stale(mono_time now, const cache_entry& of);

    // What is asked for.
    void refresh_ahead(mono_time now, cache_entry& of);
    void start_when_due(mono_time now, cache_entry& of);
    void start(mono_time now, cache_entry& of);
    void enqueue(cache_entry& of);
    void pump(mono_time now);
    void set_retry(cache_entry& of);
    void run_retries(mono_time now);

    // What comes back.
    void succeeded(mono_time now, cache_entry& of, registered_schema answer);
    void failed(mono_time now, cache_entry& of, registry_failure failure);
    void resolve(mono_time now, cache_entry& root);
    void refused(mono_time now, cache_entry& of, const registry_failure& failure);
    void leave_all(cache_entry& root);
    void tell_all(cache_entry& of, const schema_outcome& outcome);
    void begin_trouble(mono_time now, const registry_failure& failure);
    void end_trouble(mono_time now);

    void settle();
    [[nodiscard]] std::uint64_t next_random();

    schema_cache_options options;
    schema_entries entries;
    std::deque<cache_entry*> queue;  // to be asked for
    std::unordered_map<ticket, cache_entry*> asking;
    std::multimap<mono_time, cache_entry*> retries;
    ticket last_ticket{0};

    std::optional<registry_failure> trouble;
    mono_time trouble_since{};
    bool stale_told{false};  // in this spell of trouble
    backoff trouble_pace;
    mono_time paused_until{};

    std::uint64_t random{0};
    std::vector<action> actions;
    schema_counters counters;
};

bool schema_cache::impl::is_outdated(mono_time now, const cache_entry& of) const {
    return of.choice.how == schema_choice::by::latest && now >= of.answered_at + options.latest_time;
}

bool schema_cache::impl::is_ready(mono_time now, const cache_entry& of) const {
    return of.resolved && of.resolved->self == of.answer && !is_outdated(now, of);
}

/// An outdated latest version serves while there is no telling what the latest one is.
bool schema_cache::impl::may_be_stale(const cache_entry& of) const {
    return of.resolved && (of.failed || trouble);
}

void schema_cache::impl::note_stale(mono_time now, const cache_entry& of) {
    ++counters.stale_uses;
    if (std::exchange(stale_told, true)) return;
    actions.push_back(stale_used{of.subject, now - of.answered_at});
}

void schema_cache::impl::tell_stale(mono_time now, cache_entry& of) {
    if (!of.resolved) return;
    for (std::size_t left = of.waiters.size(); left > 0; --left)
        note_stale(now, of);
    tell_all(of, of.resolved);
}

// So that whoever uses it all the time never waits for it.
void schema_cache::impl::refresh_ahead(mono_time now, cache_entry& of) {
    if (of.choice.how != schema_choice::by::latest) return;
    if (now < of.answered_at + options.latest_time * 3 / 4 || of.now_is != stage::idle || of.missing > 0)
        return;
    if (of.failed && now < of.try_at) return;
    enqueue(of);
    pump(now);
}

void schema_cache::impl::start_when_due(mono_time now, cache_entry& of) {
    if (of.now_is != stage::idle || of.missing > 0) return;
    if (of.failed && now < of.try_at) {
        if (of.is_waited_for()) set_retry(of);
    } else {
        start(now, of);
    }
}

void schema_cache::impl::start(mono_time now, cache_entry& of) {
    if (of.answer && !is_outdated(now, of)) {
        resolve(now, of);
        return;
    }
    enqueue(of);
    pump(now);
}

void schema_cache::impl::enqueue(cache_entry& of) {
    if (of.retry) retries.erase(*of.retry);
    of.retry.reset();
    of.now_is = stage::queued;
    queue.push_back(&of);
}

// One request at a time shows whether the trouble is over.
void schema_cache::impl::pump(mono_time now) {
    const auto limit = trouble ? std::size_t{1} : options.requests_max;
    while (now >= paused_until && !queue.empty() && asking.size() < limit) {
        auto* const next = queue.front();
        queue.pop_front();
        next->now_is = stage::asking;
        asking.emplace(++last_ticket, next);
        ++counters.requests;
        actions.push_back(ask{last_ticket, next->subject, next->choice, next->given});
    }
}

void schema_cache::impl::set_retry(cache_entry& of) {
    if (!of.retry) of.retry = retries.emplace(of.try_at, &of);
}

void schema_cache::impl::run_retries(mono_time now) {
    while (!retries.empty() && retries.begin()->first <= now) {
        auto& due = *retries.begin()->second;
        retries.erase(retries.begin());
        due.retry.reset();
        if (due.is_waited_for()) start_when_due(now, due);
    }
}

void schema_cache::impl::succeeded(mono_time now, cache_entry& of, registered_schema answer) {
    ++counters.answers;
    end_trouble(now);
    of.pace.reset();
    entries.set_failed(of, std::nullopt);
    entries.set_answer(of, std::move(answer), now);
    if (!of.waiters.empty() || of.resolved) resolve(now, of);
    for (auto* const root : std::exchange(of.dependents, {})) {
        if (--root->missing == 0) resolve(now, *root);
    }
}

void schema_cache::impl::failed(mono_time now, cache_entry& of, registry_failure failure) {
    const bool is_answer = !is_trouble(failure.kind);
    ++counters.failed.at(static_cast<std::size_t>(failure.kind));
    if (is_answer) {
        ++counters.refusals;
        end_trouble(now);
        refused(now, of, failure);
        return;
    }
    ++counters.troubles;
    begin_trouble(now, failure);
    of.try_at = std::max(paused_until, now + of.pace.next(next_random()));
    entries.set_failed(of, std::move(failure));
    if (of.is_waited_for()) set_retry(of);
}

void schema_cache::impl::resolve(mono_time now, cache_entry& root) {
    if (!root.resolved || root.resolved->self != root.answer) {
        const held_entry held(root);
        auto walked = walk_references(now, root, entries, options);
        if (walked.failure) {
            refused(now, root, *walked.failure);
            return;
        }
        if (!walked.resolved) {
            root.missing = walked.missing.size();
            for (auto* const each : walked.missing)
                each->dependents.push_back(&root);
            for (auto* const each : walked.missing)
                start_when_due(now, *each);
            return;
        }
        root.resolved = std::move(walked.resolved);
        root.pace.reset();
        entries.set_failed(root, std::nullopt);
    }
    tell_all(root, root.resolved);
}

// A version whose references are refused is still the version of that number; what is latest is asked for
// anew.
void schema_cache::impl::refused(mono_time now, cache_entry& of, const registry_failure& failure) {
    of.try_at = now + of.pace.next(next_random());
    entries.set_failed(of, failure);
    of.resolved.reset();
    leave_all(of);
    entries.release_all(of);
    if (of.choice.how == schema_choice::by::latest) entries.forget_answer(of);
    tell_all(of, tl::unexpected(failure));
    for (auto* const root : std::exchange(of.dependents, {})) {
        --root->missing;
        refused(now, *root, because_of(failure, *root));
    }
}

/// It waits for nothing any more.
void schema_cache::impl::leave_all(cache_entry& root) {
    if (root.missing == 0) return;
    for (auto* const each : root.uses)
        std::erase(each->dependents, &root);
    root.missing = 0;
}

void schema_cache::impl::tell_all(cache_entry& of, const schema_outcome& outcome) {
    counters.waiters -= of.waiters.size();
    for (const auto whom : std::exchange(of.waiters, {}))
        actions.push_back(tell{whom, outcome});
}

void schema_cache::impl::begin_trouble(mono_time now, const registry_failure& failure) {
    const bool begins = !trouble;
    const bool is_news = begins || trouble->kind != failure.kind;
    trouble = failure;
    const auto asked = std::min<nanoseconds>(failure.retry_after, options.retry_after_max);
    paused_until = std::max(paused_until, now + std::max(asked, trouble_pace.next(next_random())));
    if (is_news) actions.push_back(trouble_began{failure});
    if (!begins) return;
    trouble_since = now;
    if (counters.waiters > 0) entries.for_each([&](cache_entry& each) { tell_stale(now, each); });
}

// Those that could not reach it need not wait any longer. Those that it failed otherwise might be why it
// does.
void schema_cache::impl::end_trouble(mono_time now) {
    trouble_pace.reset();
    if (!trouble) return;
    actions.push_back(trouble_ended{now - trouble_since});
    if (trouble->kind != failure_kind::throttled) paused_until = now;
    trouble.reset();
    stale_told = false;
    std::vector<cache_entry*> at_once;
    for (const auto& [when, of] : retries) {
        if (of->failed && of->failed->kind == failure_kind::unreachable && of->now_is == stage::idle)
            at_once.push_back(of);
    }
    for (auto* const of : at_once)
        enqueue(*of);
}

void schema_cache::impl::settle() {
    entries.trim();
    counters.entries = entries.size();
    counters.bytes = entries.bytes();
    counters.dropped = entries.dropped();
}

/// More of what was given, as SplitMix64 makes it.
std::uint64_t schema_cache::impl::next_random() {
    auto z = (random += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31U);
}

schema_cache::schema_cache(schema_cache_options options) {
    MILLRACE_ASSERT(options.validate().has_value());
    impl_ = std::make_unique<impl>(options);
}
schema_cache::~schema_cache() = default;

found_schema schema_cache::find(mono_time now, std::string_view subject, schema_choice choice) {
    auto& me = *impl_;
    auto* const entry = me.entries.find(subject, choice);
    if (entry == nullptr) return {};
    if (me.is_ready(now, *entry)) {
        me.refresh_ahead(now, *entry);
        return {entry->resolved, false, nullptr};
    }
    if (entry->resolved) {
        me.start_when_due(now, *entry);
        if (!me.may_be_stale(*entry)) return {};
        me.note_stale(now, *entry);
        return {entry->resolved, true, nullptr};
    }
    if (entry->failed && (is_trouble(entry->failed->kind) || now < entry->try_at))
        return {nullptr, false, &*entry->failed};
    return {nullptr, false, me.trouble ? &*me.trouble : nullptr};
}

void schema_cache::want(
    mono_time now,
    std::string_view subject,
    schema_choice choice,
    waiter who,
    std::shared_ptr<const schema_text> schema
) {
    auto& me = *impl_;
    MILLRACE_ASSERT(choice.how != schema_choice::by::text || schema);
    auto* entry = me.entries.find(subject, choice);
    if (entry == nullptr && me.counters.waiters < me.options.waiters_max)
        entry = me.entries.make(subject, choice);
    if (entry == nullptr || me.counters.waiters >= me.options.waiters_max) {
        me.actions.push_back(tell{who, tl::unexpected(no_room(me.options))});
        return;
    }
    entry->given = std::move(schema);
    const bool ready = me.is_ready(now, *entry);
    if (!ready && entry->resolved) me.start_when_due(now, *entry);
    if (ready || me.may_be_stale(*entry)) {
        if (!ready) me.note_stale(now, *entry);
        me.actions.push_back(tell{who, entry->resolved});
    } else {
        entry->waiters.push_back(who);
        ++me.counters.waiters;
        me.start_when_due(now, *entry);
    }
    me.settle();
}

void schema_cache::answered(
    mono_time now,
    ticket which,
    tl::expected<registered_schema, registry_failure> outcome,
    std::uint64_t random
) {
    auto& me = *impl_;
    me.random ^= random;
    const auto at = me.asking.find(which);
    MILLRACE_ASSERT(at != me.asking.end());
    auto& entry = *at->second;
    me.asking.erase(at);
    entry.now_is = stage::idle;
    if (outcome) {
        me.succeeded(now, entry, std::move(*outcome));
    } else {
        me.failed(now, entry, std::move(outcome.error()));
    }
    me.pump(now);
    me.settle();
}

void schema_cache::tick(mono_time now) {
    impl_->run_retries(now);
    impl_->pump(now);
    impl_->settle();
}

std::optional<mono_time> schema_cache::wake_at() const {
    const auto& me = *impl_;
    std::optional<mono_time> at;
    if (!me.retries.empty()) at = me.retries.begin()->first;
    if (!me.queue.empty() && me.asking.empty()) at = at ? std::min(*at, me.paused_until) : me.paused_until;
    return at;
}

std::vector<schema_cache::action> schema_cache::take_actions() {
    return std::exchange(impl_->actions, {});
}

bool schema_cache::has_actions() const noexcept {
    return !impl_->actions.empty();
}

const registry_failure* schema_cache::trouble() const noexcept {
    return impl_->trouble ? &*impl_->trouble : nullptr;
}

const schema_counters& schema_cache::counters() const noexcept {
    return impl_->counters;
}

}  // namespace millrace::registry
