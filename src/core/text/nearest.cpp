#include "text/nearest.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

namespace millrace {

namespace {

constexpr std::size_t word_max = 64;  // Longer input is no slip of a known word, and would cost time.

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before(b.size() + 1);
    std::vector<std::size_t> last(b.size() + 1);
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j)
        last[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
            row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                row[j] = std::min(row[j], before[j - 2] + 1);
            }
        }
        before.swap(last);
        last.swap(row);
    }
    return last[b.size()];
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates) {
    if (word.size() > word_max) return {};
    std::string_view best;
    // Two letters of a short word make another word.
    std::size_t best_distance = std::max<std::size_t>(word.size() < 5 ? 1 : 2, word.size() / 3) + 1;
    for (const std::string_view candidate : candidates) {
        const bool begun = word.size() >= 3 && candidate.substr(0, word.size()) == word;
        const std::size_t distance = begun ? 1 : edit_distance(word, candidate);
        // A distance as long as the word itself has nothing in common with it.
        if (distance < best_distance && distance < std::max(word.size(), candidate.size())) {
            best = candidate;
            best_distance = distance;
        }
    }
    return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates) {
    const std::string_view best = nearest(word, candidates);
    return best.empty() ? std::string{} : fmt::format("; did you mean \"{}\"?", best);
}

}  // namespace millrace
