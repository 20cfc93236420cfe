/// The log of an application, of which a line that it throws at costs that line and nothing else: it is
/// written to on threads where an exception would end the process.
///
/// Thread contract: as the log's.
#pragma once

#include <millrace/log.hpp>

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace millrace {

class guarded_log final : public log_sink {
public:
    /// `inside` must outlive this.
    explicit guarded_log(log_sink& inside) : inside_(inside) {}

    [[nodiscard]] bool enabled(log_level level) const noexcept override { return inside_.enabled(level); }

    void write(log_level level, std::string_view event, std::initializer_list<log_field> fields) override {
        const auto untold = lost_.exchange(0);
        std::uint64_t open = untold + 1;
        try {
            if (untold > 0)
                inside_.write(log_level::warning, "log.threw", {{"lines", std::to_string(untold)}});
            open = 1;
            inside_.write(level, event, fields);
        } catch (...) {
            lost_ += open;  // told with the next line that is taken
        }
    }

private:
    log_sink& inside_;
    std::atomic<std::uint64_t> lost_{0};
};

}  // namespace millrace
