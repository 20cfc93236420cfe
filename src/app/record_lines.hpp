/// Writes records as lines of JSON, the form of `consume --print`.
///
/// One object serves one batch after another of one shard under one epoch. Appends to a buffer that the
/// caller keeps, so that a line costs no memory of its own.
#pragma once

#include <millrace/names.hpp>
#include <millrace/record.hpp>

#include <string>
#include <string_view>

namespace millrace::app {

class record_lines {
public:
    record_lines(std::string_view stream, const shard_id& shard, std::string_view worker, epoch mine);

    /// Appends the record and a newline.
    void append(std::string& out, const record& item);

private:
    void append_time(std::string& out, wall_time moment);

    std::string head_;  ///< Up to the sequence number.
    std::string tail_;  ///< What follows the arrival time.
    std::chrono::sys_seconds second_{std::chrono::seconds{-1}};
    std::string second_text_;  ///< `2026-11-30T10:15:00`, of `second_`.
};

}  // namespace millrace::app
