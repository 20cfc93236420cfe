/// The reply to one statement: rows in binary, decoded where they lie.
///
/// Not thread-safe. Views live as long as the object; moving it does not move the bytes.
#pragma once

#include "binary.hpp"

#include <millrace/time.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct pg_result;

namespace millrace::postgres {

class rows {
public:
    explicit rows(pg_result* owned) noexcept : result_(owned) {}

    [[nodiscard]] std::size_t size() const noexcept;
    [[nodiscard]] bool empty() const noexcept { return size() == 0; }

    /// Rows inserted, changed, deleted or selected, as the server's command tag says.
    [[nodiscard]] std::uint64_t affected() const noexcept;

    /// As `UPDATE 1`.
    [[nodiscard]] std::string_view tag() const noexcept;

    /// Rows and columns are numbered from 0. The bytes of the value; `nullopt` for NULL.
    [[nodiscard]] std::optional<std::string_view> value(std::size_t row, int column) const noexcept;
    [[nodiscard]] bool is_null(std::size_t row, int column) const noexcept;

    /// `nullopt` for NULL and for a value that is not of this type.
    [[nodiscard]] std::optional<std::int64_t> integer(std::size_t row, int column) const noexcept;
    [[nodiscard]] std::optional<bool> boolean(std::size_t row, int column) const noexcept;
    [[nodiscard]] std::optional<wall_time> time(std::size_t row, int column) const noexcept;

    /// The bytes of the value; empty for NULL.
    [[nodiscard]] std::string text(std::size_t row, int column) const;

    /// About what the reply takes in memory.
    [[nodiscard]] std::size_t bytes() const noexcept;

private:
    struct clear {
        void operator()(pg_result* r) const noexcept;
    };
    std::unique_ptr<pg_result, clear> result_;
};

}  // namespace millrace::postgres
