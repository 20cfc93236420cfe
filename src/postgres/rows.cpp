#include "rows.hpp"

#include <charconv>

#include <libpq-fe.h>

namespace millrace::postgres {

void rows::clear::operator()(pg_result* r) const noexcept {
    PQclear(r);
}

std::size_t rows::size() const noexcept {
    return static_cast<std::size_t>(PQntuples(result_.get()));
}

std::uint64_t rows::affected() const noexcept {
    const std::string_view tag = PQcmdTuples(result_.get());
    std::uint64_t count = 0;
    (void
    )std::from_chars(tag.data(), tag.data() + tag.size(), count);  // empty when the command counts nothing
    return count;
}

std::string_view rows::tag() const noexcept {
    return PQcmdStatus(result_.get());
}

std::optional<std::string_view> rows::value(std::size_t row, int column) const noexcept {
    if (is_null(row, column)) return std::nullopt;
    const int at = static_cast<int>(row);
    return std::string_view(
        PQgetvalue(result_.get(), at, column),
        static_cast<std::size_t>(PQgetlength(result_.get(), at, column))
    );
}

bool rows::is_null(std::size_t row, int column) const noexcept {
    return PQgetisnull(result_.get(), static_cast<int>(row), column) != 0;
}

std::optional<std::int64_t> rows::integer(std::size_t row, int column) const noexcept {
    const auto bytes = value(row, column);
    return bytes ? decode_integer(*bytes) : std::nullopt;
}

std::optional<bool> rows::boolean(std::size_t row, int column) const noexcept {
    const auto bytes = value(row, column);
    return bytes ? decode_boolean(*bytes) : std::nullopt;
}

std::optional<wall_time> rows::time(std::size_t row, int column) const noexcept {
    const auto bytes = value(row, column);
    return bytes ? decode_time(*bytes) : std::nullopt;
}

std::string rows::text(std::size_t row, int column) const {
    return std::string(value(row, column).value_or(""));
}

std::size_t rows::bytes() const noexcept {
    return PQresultMemorySize(result_.get());
}

}  // namespace millrace::postgres
