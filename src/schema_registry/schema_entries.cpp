#include "schema_entries.hpp"

#include "assert.hpp"

#include <utility>

namespace millrace::registry {

namespace {

constexpr std::size_t entry_bytes = 1'024;

std::size_t bytes_of(const schema_text& text) {
    constexpr std::size_t reference_bytes = 64;
    std::size_t sum = text.text.size();
    for (const auto& each : text.references)
        sum += reference_bytes + each.name.size() + each.subject.size();
    return sum;
}

bool same(const registered_schema& a, const registered_schema& b) {
    return a.id == b.id && a.version == b.version && a.guid == b.guid && a.subject == b.subject &&
           (a.schema == b.schema || *a.schema == *b.schema);
}

}  // namespace

cache_entry* schema_entries::find(std::string_view subject, schema_choice choice) {
    const auto at = index_.find(key{subject, choice});
    if (at == index_.end()) return nullptr;
    auto* const found = at->second;
    entries_.splice(entries_.begin(), entries_, found->self);
    return found;
}

cache_entry* schema_entries::make(std::string_view subject, schema_choice choice) {
    if (entries_.size() >= options_.entries_max && !drop_one()) return nullptr;
    entries_.push_front({std::string(subject), choice, backoff(options_.backoff_min, options_.backoff_max)});
    auto& made = entries_.front();
    made.self = entries_.begin();
    index_.emplace(key{made.subject, choice}, &made);
    charge(made);
    return &made;
}

bool schema_entries::set_answer(cache_entry& of, registered_schema answer, mono_time now) {
    of.answered_at = now;
    if (of.answer && same(*of.answer, answer)) return false;
    forget_answer(of);
    share_text(of, answer);
    of.answer = std::make_shared<const registered_schema>(std::move(answer));
    charge(of);
    return true;
}

void schema_entries::forget_answer(cache_entry& of) {
    if (of.shares_text) {
        const auto at = texts_.find(of.answer->id);
        MILLRACE_ASSERT(at != texts_.end());
        if (--at->second.entries == 0) {
            bytes_ -= bytes_of(*at->second.text);
            texts_.erase(at);
        }
        of.shares_text = false;
    }
    of.answer.reset();
    charge(of);
}

void schema_entries::set_failed(cache_entry& of, std::optional<registry_failure> failure) {
    of.failed = std::move(failure);
    charge(of);
}

void schema_entries::hold(cache_entry& by, cache_entry& what) {
    by.uses.push_back(&what);
    ++what.holders;
}

void schema_entries::release_all(cache_entry& by) {
    for (auto* const each : by.uses)
        --each->holders;
    by.uses.clear();
}

void schema_entries::trim() {
    while (bytes_ > options_.bytes_max && drop_one()) {
    }
}

// What may not be dropped is in use, so it goes to the front: the next search does not meet it again.
bool schema_entries::drop_one() {
    constexpr std::size_t looked_at_max = 1'000;
    for (auto left = std::min(looked_at_max, entries_.size()); left > 0; --left) {
        const auto last = std::prev(entries_.end());
        if (last->may_be_dropped()) {
            drop(last);
            return true;
        }
        entries_.splice(entries_.begin(), entries_, last);
    }
    return false;
}

void schema_entries::drop(std::list<cache_entry>::iterator which) {
    release_all(*which);
    which->failed.reset();
    forget_answer(*which);
    bytes_ -= which->charged;
    index_.erase(key{which->subject, which->choice});
    entries_.erase(which);
    ++dropped_;
}

void schema_entries::charge(cache_entry& of) {
    bytes_ -= of.charged;
    of.charged = entry_bytes + of.subject.size();
    if (of.failed) of.charged += of.failed->why.detail.size();
    if (of.answer) of.charged += of.answer->subject.size() + of.answer->guid.size();
    if (of.answer && !of.shares_text) of.charged += bytes_of(*of.answer->schema);
    bytes_ += of.charged;
}

// Ids mean the same text everywhere, unless a registry keeps several contexts apart.
void schema_entries::share_text(cache_entry& of, registered_schema& answer) {
    const auto [at, is_new] = texts_.try_emplace(answer.id);
    if (is_new) {
        at->second.text = answer.schema;
        bytes_ += bytes_of(*answer.schema);
    } else if (*at->second.text == *answer.schema) {
        answer.schema = at->second.text;
    } else {
        return;
    }
    ++at->second.entries;
    of.shares_text = true;
}

}  // namespace millrace::registry
