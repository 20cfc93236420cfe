/// A callback that whoever runs a consumer or a relay has given us, in a cover that catches its exceptions.
///
/// Thread contract: as the callback's.
#pragma once

#include <millrace/error.hpp>
#include <millrace/log.hpp>

#include <exception>
#include <functional>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace millrace {

/// Empty when `what` is. An exception is logged and told to `failed`.
template <class News>
[[nodiscard]] std::function<void(const News&)> caught(
    std::string name, std::function<void(const News&)> what, log_sink& log, std::function<void(error)> failed
) {
    if (!what) return {};
    return [name = std::move(name), what = std::move(what), &log, failed = std::move(failed)](const News& news
           ) {
        const auto thrown = [&](const char* why) {
            auto detail = fmt::format("the callback `{}` threw: {}; let it catch what it throws", name, why);
            log.write(log_level::error, "callback.threw", {{"callback", name}, {"detail", detail}});
            failed({errc::handler_failed, retry_advice::never, false, std::move(detail)});
        };
        try {
            what(news);
        } catch (const std::exception& e) {
            thrown(e.what());
        } catch (...) {
            thrown("something that is not a std::exception");
        }
    };
}

}  // namespace millrace
