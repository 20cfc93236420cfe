/// Acknowledged rows on their way out of the table: gathered, then deleted as ranges.
///
/// A range holds only ids that were read and acknowledged: neighbours by arithmetic, nothing between. One
/// request is outstanding at a time. Pure; no thread safety.
#pragma once

#include "port/outbox_source.hpp"

#include <millrace/names.hpp>
#include <millrace/time.hpp>

#include <cstddef>
#include <optional>
#include <vector>

namespace millrace {

class deletions {
public:
    void acknowledged(mono_time now, row_id id);

    /// The next request: when `rows_max` ids wait, or the oldest has waited for `delay`.
    [[nodiscard]] std::vector<id_range> next(mono_time now, std::size_t rows_max, nanoseconds delay);

    /// The ids of the request, which are gone now.
    [[nodiscard]] std::vector<row_id> succeeded();
    void failed(mono_time retry_at);
    void clear();

    [[nodiscard]] bool outstanding() const noexcept { return outstanding_; }
    [[nodiscard]] std::size_t size() const noexcept { return waiting_.size() + leaving_.size(); }
    [[nodiscard]] mono_time due(std::size_t rows_max, nanoseconds delay) const;

private:
    std::vector<row_id> waiting_;
    std::vector<row_id> leaving_;
    std::optional<mono_time> oldest_;
    mono_time not_before_{};
    bool outstanding_{false};
};

}  // namespace millrace
