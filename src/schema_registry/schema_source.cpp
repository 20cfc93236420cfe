#include "schema_source.hpp"

#include "assert.hpp"

#include <utility>

namespace millrace::registry {

schema_source::schema_source(host& home, std::unique_ptr<schema_registry> from, schema_cache_options options)
    : home_(home), cache_(options), registry_(std::move(from)) {}

schema_source::~schema_source() {
    if (alarm_at_) home_.cancel(alarm_);
}

schema_choice schema_source::given(schema_text schema, bool may_register) {
    texts_.push_back({std::make_shared<const schema_text>(std::move(schema)), may_register});
    return schema_choice::text(static_cast<std::uint32_t>(texts_.size() - 1));
}

found_schema schema_source::find(std::string_view subject, schema_choice choice) {
    auto found = cache_.find(home_.now(), subject, choice);
    if (cache_.has_actions()) settle();
    return found;
}

void schema_source::want(std::string_view subject, schema_choice choice, completion done) {
    std::shared_ptr<const schema_text> schema;
    if (choice.how == schema_choice::by::text) {
        MILLRACE_ASSERT(choice.number < texts_.size());
        schema = texts_[choice.number].schema;
    }
    waiting_.emplace(++last_waiter_, std::move(done));
    cache_.want(home_.now(), subject, choice, last_waiter_, std::move(schema));
    settle();
}

void schema_source::settle() {
    for (auto& each : cache_.take_actions())
        std::visit([this](auto& what) { carry_out(what); }, each);
    set_alarm();
}

void schema_source::carry_out(schema_cache::ask& what) {
    registry_->ask(question_for(what), alive_.guard([this, which = what.which](answer outcome) {
        cache_.answered(home_.now(), which, std::move(outcome), home_.random());
        settle();
    }));
}

void schema_source::carry_out(schema_cache::tell& what) {
    auto waited = waiting_.extract(what.whom);
    MILLRACE_ASSERT(!waited.empty());
    home_.post(alive_.guard([done = std::move(waited.mapped()), outcome = std::move(what.outcome)] {
        done(outcome);
    }));
}

void schema_source::carry_out(const schema_cache::trouble_began& what) {
    home_.log().write(
        log_level::warning,
        "schema_registry.trouble",
        {{"kind", std::string(name_of(what.failure.kind))}, {"detail", what.failure.why.detail}}
    );
}

void schema_source::carry_out(const schema_cache::trouble_ended& what) {
    const auto lasted = std::chrono::duration_cast<milliseconds>(what.lasted).count();
    home_.log().write(log_level::info, "schema_registry.recovered", {{"after_ms", std::to_string(lasted)}});
}

void schema_source::carry_out(const schema_cache::stale_used& what) {
    const auto age = std::chrono::duration_cast<milliseconds>(what.age).count();
    home_.log().write(
        log_level::warning,
        "schema_registry.stale",
        {{"subject", what.subject},
         {"age_ms", std::to_string(age)},
         {"detail", "known latest versions are used until the registry answers again"}}
    );
}

question schema_source::question_for(const schema_cache::ask& what) const {
    switch (what.choice.how) {
        case schema_choice::by::latest:
            return ask_version{what.subject, std::nullopt};
        case schema_choice::by::version:
            return ask_version{what.subject, static_cast<std::int32_t>(what.choice.number)};
        case schema_choice::by::id:
            return ask_id{what.choice.number};
        case schema_choice::by::text:
            break;
    }
    if (texts_[what.choice.number].may_register) return register_text{what.subject, what.schema};
    return ask_text{what.subject, what.schema};
}

void schema_source::set_alarm() {
    const auto due = cache_.wake_at();
    if (due == alarm_at_) return;
    if (alarm_at_) home_.cancel(alarm_);
    alarm_at_ = due;
    if (!due) return;
    alarm_ = home_.call_at(*due, alive_.guard([this] {
        alarm_at_.reset();
        cache_.tick(home_.now());
        settle();
    }));
}

}  // namespace millrace::registry
