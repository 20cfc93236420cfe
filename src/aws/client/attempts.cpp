#include "client/attempts.hpp"

namespace millrace::aws {

attempts::attempts(attempt_options options, mono_time deadline)
    : options_(options),
      deadline_(deadline),
      throttled_(options.throttled_pause, std::max(options.throttled_pause, options.pause_max)),
      transient_(options.transient_pause, std::max(options.transient_pause, options.pause_max)) {}

attempts::action attempts::failed(
    mono_time now, const attempt_failure& what, retry_budget& budget, std::uint64_t random
) {
    ++made_;
    if (what.effect_possible && !options_.repeatable) return tell{.in_doubt = true};
    switch (what.kind) {
        case failure_class::final:
            return tell{};
        case failure_class::clock_skew:
            if (clock_learned_ || !what.clock_was_wrong) return tell{};
            clock_learned_ = true;
            return now < deadline_ ? action(again{}) : action(tell{.gave_up = true});
        case failure_class::expired_keys:
            if (keys_renewed_) return tell{};
            keys_renewed_ = true;
            return now < deadline_ ? action(other_keys{}) : action(tell{.gave_up = true});
        case failure_class::throttled:
            if (!options_.wait_when_throttled) return tell{};
            return after_pause(now, throttled_.next(random), budget);
        case failure_class::transient:
            break;
    }
    return after_pause(now, transient_.next(random), budget);
}

attempts::action attempts::after_pause(mono_time now, nanoseconds pause, retry_budget& budget) {
    if (made_ >= options_.attempts_max || now + pause >= deadline_ || !budget.take()) {
        return tell{.gave_up = true};
    }
    return again{pause};
}

}  // namespace millrace::aws
