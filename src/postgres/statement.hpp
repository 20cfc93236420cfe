/// One SQL statement with its parameters in binary, to be sent over a connection.
///
/// Plain data of one thread. Bytes and texts are not copied: they must live until the statement has run.
#pragma once

#include "binary.hpp"

#include <millrace/time.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace millrace::postgres {

/// Bytes for a bytea; a plain `string_view` is sent as text.
struct bytes_view {
    std::string_view bytes;
};

/// text[] and bytea[]; empty elements are NULL.
struct text_array {
    std::span<const std::optional<std::string_view>> values;
};
struct bytes_array {
    std::span<const std::optional<std::string_view>> values;
};

/// Whether a lost reply leaves something in doubt.
enum class effect : std::uint8_t { reads, writes };

/// Whether a statement is sent so often that the server is to keep its plan, made once and for any
/// parameters.
enum class planning : std::uint8_t { each_time, once };

class statement {
public:
    /// `doing` continues "cannot ..." and is followed by the server's name: "read the leases in".
    statement(std::string sql, effect what, std::string doing, planning plan = planning::each_time)
        : sql_(std::move(sql)), doing_(std::move(doing)), effect_(what), plan_(plan) {}

    /// Parameters in order, $1 first.
    void add(std::int64_t value);
    void add(std::string_view text) { refer(type_id::text, text); }
    void add(bytes_view value) { refer(type_id::bytea, value.bytes); }
    void add(const char* text) { add(std::string_view(text)); }
    void add(const std::string& text) { add(std::string_view(text)); }
    void add(bool value);
    void add(wall_time value);
    void add(std::span<const std::int64_t> values);
    void add(text_array array);
    void add(bytes_array array);

    /// NULL, of the type that the statement makes it.
    void add(std::nullopt_t);

    template <class T>
    requires(std::is_integral_v<T> && !std::is_same_v<T, std::int64_t> && !std::is_same_v<T, bool>) void add(
        T value
    ) {
        add(static_cast<std::int64_t>(value));
    }
    template <class T>
    void add(const std::optional<T>& value) {
        if (value) {
            add(*value);
        } else {
            add(std::nullopt);
        }
    }

    template <class... Ts>
    statement&& with(const Ts&... values) && {
        (add(values), ...);
        return std::move(*this);
    }

    [[nodiscard]] const std::string& sql() const noexcept { return sql_; }
    [[nodiscard]] const std::string& doing() const noexcept { return doing_; }
    [[nodiscard]] bool writes() const noexcept { return effect_ == effect::writes; }
    [[nodiscard]] bool keeps_plan() const noexcept { return plan_ == planning::once; }

    struct parameter {
        type_id type{type_id::unknown};
        std::optional<std::string_view> value;
    };
    [[nodiscard]] std::size_t parameters() const noexcept { return parameters_.size(); }
    [[nodiscard]] parameter at(std::size_t index) const;

private:
    struct slot {
        type_id type{type_id::unknown};
        const char* bytes{nullptr};  ///< The caller's; null: in `encoded_`.
        std::size_t offset{0};
        std::size_t length{0};
        bool null{false};
    };
    void refer(type_id type, std::string_view bytes);

    template <class Encode>
    void encode(type_id type, Encode&& append) {
        const auto begin = encoded_.size();
        append(encoded_);
        parameters_.push_back({type, nullptr, begin, encoded_.size() - begin, false});
    }

    std::string sql_;
    std::string doing_;
    effect effect_;
    planning plan_;
    std::string encoded_;
    std::vector<slot> parameters_;
};

}  // namespace millrace::postgres
