/// The way between a client and a service: latency, refusals, lost replies, requests that land late.
///
/// What a request does happens in the world, also while the client's host is paused or after it has crashed;
/// its completion is called once, on the client's host, never inside the call that asked, and not at all when
/// the link is gone.
#pragma once

#include "port/host.hpp"
#include "rng.hpp"
#include "scheduler.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace millrace::sim {

using namespace std::chrono_literals;

/// What becomes of one request.
enum class fate : std::uint8_t {
    normal,
    unavailable,   ///< Refused before it took effect.
    throttled,     ///< Likewise.
    lost_request,  ///< Never takes effect; the client cannot know.
    lost_reply,    ///< Takes effect; the client cannot know.
    late,          ///< The client gives up; the request takes effect some time after that.
    doubled,       ///< Takes effect twice; the second reply is the one that arrives.
};

/// Chances in a hundred, for each request alone, and durations.
struct faults {
    std::uint32_t unavailable{0};
    std::uint32_t throttled{0};
    std::uint32_t lost_request{0};
    std::uint32_t lost_reply{0};
    std::uint32_t late{0};
    std::uint32_t doubled{0};
    bool down{false};  ///< Every request is refused.
    nanoseconds latency_min{1ms};
    nanoseconds latency_max{5ms};
    nanoseconds timeout{300ms};  ///< After which a client gives up.
    nanoseconds late_max{3s};    ///< A late request lands at most so long after the client gave up.

    /// The same service on a good day.
    [[nodiscard]] faults calm() const {
        return {.latency_min = latency_min, .latency_max = latency_max, .timeout = timeout};
    }
};

/// Reports for an error that a fault of the link stands for.
[[nodiscard]] error link_error(fate what, std::string_view service, std::string_view request, bool writes);

class link {
public:
    /// All references must outlive the link; `plan` may change at any time. Effects run in the world.
    link(scheduler& world, host& client, rng& random, const faults& plan, std::string service)
        : world_(world), client_(client), random_(random), plan_(plan), service_(std::move(service)) {}

    template <class T>
    using effect = std::function<result<T>()>;

    /// What a request does when it takes more than one moment: calls `finish` once.
    template <class T>
    using slow_effect = std::function<void(std::function<void(result<T>)> finish)>;

    /// A request that changes nothing: at worst its reply does not come.
    template <class T>
    void ask(std::string_view request, effect<T> what, completion<T> done) {
        send<T>(request, false, slowly<T>(std::move(what)), std::move(done));
    }
    template <class T>
    void ask_slowly(std::string_view request, slow_effect<T> what, completion<T> done) {
        send<T>(request, false, std::move(what), std::move(done));
    }

    /// A request that changes something: not at all, once or twice.
    template <class T>
    void change(std::string_view request, effect<T> what, completion<T> done) {
        send<T>(request, true, slowly<T>(std::move(what)), std::move(done));
    }

    /// The next request of this name meets this fate; calls add up.
    void force(std::string_view request, fate what) { forced_[std::string(request)].push_back(what); }

    [[nodiscard]] fate draw(std::string_view request, bool writes);
    [[nodiscard]] nanoseconds latency();
    [[nodiscard]] nanoseconds upto(nanoseconds span);
    [[nodiscard]] scheduler& world() noexcept { return world_; }
    [[nodiscard]] host& client() noexcept { return client_; }
    [[nodiscard]] rng& random() noexcept { return random_; }
    [[nodiscard]] const faults& plan() const noexcept { return plan_; }
    [[nodiscard]] const std::string& service() const noexcept { return service_; }

    /// Calls `done` on the client's host at `when`.
    template <class T>
    void reply_at(world_time when, completion<T> done, result<T> outcome) {
        auto on_host =
            alive_.guard([done = std::move(done), outcome = std::move(outcome)] { done(outcome); });
        world_.at(when, alive_.guard([this, on_host = std::move(on_host)] { client_.post(on_host); }));
    }

private:
    template <class T>
    static slow_effect<T> slowly(effect<T> what) {
        return [what = std::move(what)](const std::function<void(result<T>)>& finish) { finish(what()); };
    }

    template <class T>
    void send(std::string_view request, bool writes, slow_effect<T> what, completion<T> done) {
        const auto drawn = draw(request, writes);
        const auto arrives = world_.now() + latency();
        const auto gives_up = world_.now() + plan_.timeout;
        const auto unheard = [what] { what([](const result<T>&) {}); };
        switch (drawn) {
            case fate::unavailable:
            case fate::throttled:
                reply_at<T>(arrives, std::move(done), failed(drawn, request, writes));
                return;
            case fate::doubled:
                world_.at(arrives, unheard);
                [[fallthrough]];
            case fate::normal:
                answer<T>(arrives, latency(), std::move(what), std::move(done));
                return;
            case fate::lost_reply:
                world_.at(arrives, unheard);
                break;
            case fate::late:
                world_.at(gives_up + upto(plan_.late_max), unheard);
                break;
            case fate::lost_request:
                break;
        }
        reply_at<T>(gives_up, std::move(done), failed(drawn, request, writes));
    }

    // The effect runs whatever has become of the client; only the way back ends with the link.
    template <class T>
    void answer(world_time arrives, nanoseconds back, slow_effect<T> what, completion<T> done) {
        auto way_back = alive_.guard([this, back, done = std::move(done)](result<T> outcome) {
            reply_at<T>(world_.now() + back, done, std::move(outcome));
        });
        world_.at(arrives, [what = std::move(what), way_back = std::move(way_back)] { what(way_back); });
    }

    [[nodiscard]] tl::unexpected<error> failed(fate what, std::string_view request, bool writes) const {
        return tl::unexpected<error>(link_error(what, service_, request, writes));
    }

    scheduler& world_;
    host& client_;
    rng& random_;
    const faults& plan_;
    std::string service_;
    std::map<std::string, std::deque<fate>, std::less<>> forced_;
    lifetime alive_;
};

}  // namespace millrace::sim
