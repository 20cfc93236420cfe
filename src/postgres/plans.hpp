/// The statements that a session of the server keeps prepared, by their text and their parameters' types.
///
/// Plain data of one connection, which sends and confirms them. None is kept before it is known that the
/// connection always meets the same session.
#pragma once

#include "statement.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace millrace::postgres {

class plans {
public:
    struct plan {
        std::string name;
        std::string sql;
        std::vector<type_id> types;
        bool ready{false};  ///< The server has confirmed it.
    };

    /// Above, all are made anew: an outbox that is made again and again brings other texts.
    static constexpr std::size_t plans_max = 48;

    [[nodiscard]] bool decided() const noexcept { return may_keep_ != answer::unknown; }
    [[nodiscard]] bool may_keep() const noexcept { return may_keep_ == answer::yes; }
    void decide(bool may_keep);

    /// Before each group: whether the server is to drop all that it keeps.
    [[nodiscard]] bool must_clear();

    /// Of a statement whose plan is to be kept, valid until `forget` or `must_clear`; otherwise null.
    [[nodiscard]] plan* of(const statement& what);

    /// After a refusal: what is kept is of no use any more.
    void forget();

private:
    enum class answer : std::uint8_t { unknown, yes, no };

    answer may_keep_{answer::unknown};
    bool stale_{false};  ///< The server keeps what was forgotten here.
    std::uint64_t made_{0};
    std::vector<std::unique_ptr<plan>> all_;
};

/// Whether a refusal is about a kept plan, and not about what it was to do.
[[nodiscard]] bool is_about_plan(std::string_view sqlstate) noexcept;

/// Whether such a refusal shows that sessions change under the connection.
[[nodiscard]] bool shows_pooler(std::string_view sqlstate) noexcept;

}  // namespace millrace::postgres
