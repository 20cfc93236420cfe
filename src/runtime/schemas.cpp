#include "schemas.hpp"

#include "schema_faults.hpp"

#ifdef MILLRACE_WITH_SCHEMAS
#include "option_faults.hpp"
#include "rules/rule_faults.hpp"
#include "schema_adapters.hpp"
#include "schema_sink.hpp"
#endif

#include <utility>

namespace millrace {

#ifdef MILLRACE_WITH_SCHEMAS

namespace {

registry::registry_options registry_options_of(const schema_settings& from) {
    registry::registry_options out;
    static_cast<registry_access&>(out) = from;
    return out;
}

registry::schema_cache_options cache_options_of(const schema_settings& from) {
    registry::schema_cache_options out;
    out.latest_time = from.latest_time;
    out.bytes_max = from.cache_bytes;
    return out;
}

class coded_schemas final : public schemas {
public:
    coded_schemas(host& home, std::shared_ptr<schema::row_coder> coder)
        : home_(home), coder_(std::move(coder)) {}

    std::unique_ptr<event_sink> around(std::unique_ptr<event_sink> inner) override {
        return std::make_unique<schema::schema_sink>(home_, std::move(inner), coder_);
    }

    void look(std::function<void(const error&)> lacking) override { coder_->look_for_guids(lacking); }

    [[nodiscard]] std::optional<error> trouble() const override {
        const auto* const why = coder_->source().trouble();
        if (why == nullptr) return std::nullopt;
        // Whatever it is, it is waited out.
        return error{errc::unavailable, retry_advice::after_delay, false, why->why.detail};
    }

    [[nodiscard]] schema_status status() const override {
        const auto& counters = coder_->source().counters();
        schema_status now;
        now.requests = counters.requests;
        now.answers = counters.answers;
        for (std::size_t i = 0; i < counters.failed.size(); ++i) {
            const auto kind = static_cast<registry::failure_kind>(i);
            now.failed.push_back({std::string(name_of(kind)), counters.failed[i]});
        }
        now.cached = counters.entries;
        now.cached_bytes = counters.bytes + coder_->compiled_bytes();
        now.stale_uses = counters.stale_uses;
        now.dropped = counters.dropped;
        now.wanted = counters.waiters;
        if (const auto why = trouble()) now.trouble = why->detail;
        return now;
    }

private:
    host& home_;
    std::shared_ptr<schema::row_coder> coder_;
};

}  // namespace

std::vector<schema_fault> faults_of(const schema_settings& settings) {
    std::vector<schema_fault> found;
    if (settings.rules.empty()) {
        found.push_back(
            {"rules", 0, "", "a schema registry is named, but no rule uses it; add rules, or leave it out"}
        );
    }
    if (settings.urls.empty()) {
        found.push_back({"urls", 0, "", "there are rules for schemas, but no registry; name its address"});
    } else {
        for (auto& fault : registry::faults_of(registry_options_of(settings)))
            found.push_back({std::string(fault.option), fault.index, "", std::move(fault.what)});
    }
    if (const auto valid = cache_options_of(settings).validate(); !valid)
        found.push_back({"", 0, "", valid.error().detail});
    for (auto& fault : schema::faults_of(settings.rules)) {
        using place = schema::rule_fault::place;
        const auto* const part = fault.where == place::value ? "value"
                                 : fault.where == place::key ? "key"
                                                             : "topic";
        found.push_back({"rules", fault.rule, part, std::move(fault.what)});
    }
    return found;
}

namespace schema_adapters {

result<std::shared_ptr<schema::row_coder>> open_coder(
    const schema_settings& settings, host& home, schema::registering may
) {
    auto registry = registry::connect_registry(home, registry_options_of(settings));
    if (!registry) return tl::unexpected(std::move(registry.error()));
    auto source =
        std::make_unique<registry::schema_source>(home, std::move(*registry), cache_options_of(settings));
    auto rules = schema::prepare_rules(settings.rules, *source, may);
    if (!rules) return tl::unexpected(std::move(rules.error()));
    schema::row_coder_limits limits;
    limits.compiled_bytes_max = settings.cache_bytes;
    return std::make_shared<schema::row_coder>(home, std::move(source), std::move(*rules), limits);
}

}  // namespace schema_adapters

result<std::shared_ptr<schemas>> open_schemas(const schema_settings& settings, host& home) {
    auto coder = schema_adapters::open_coder(settings, home);
    if (!coder) return tl::unexpected(std::move(coder.error()));
    return std::make_shared<coded_schemas>(home, std::move(*coder));
}

#else

std::vector<schema_fault> faults_of(const schema_settings&) {
    return {
        {"rules",
         0,
         "",
         "this build has no schemas; leave their rules out, or build with MILLRACE_WITH_SCHEMAS=ON"}};
}

result<std::shared_ptr<schemas>> open_schemas(const schema_settings& settings, host&) {
    return tl::unexpected(settings.validate().error());
}

#endif

result<void> schema_settings::validate() const {
    if (auto found = faults_of(*this); !found.empty())
        return fail(errc::invalid_config, std::move(found.front().what));
    return {};
}

}  // namespace millrace
