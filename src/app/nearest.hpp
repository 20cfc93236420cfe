/// Finds the word that somebody probably meant. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace millrace::app {

/// Insertions, deletions, replacements and swaps of neighbours that turn one word into the other.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate nearest to `word`; empty when none is near enough to be a slip.
[[nodiscard]] std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

/// `; did you mean "lease"?` or, when nothing is near, nothing.
[[nodiscard]] std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace millrace::app
