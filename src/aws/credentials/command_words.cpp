#include "credentials/command_words.hpp"

#include "credentials/text.hpp"

#include <cstddef>
#include <utility>

namespace millrace::aws {

namespace {

class word_splitter {
public:
    explicit word_splitter(std::string_view line) : line_(line) {}

    result<std::vector<std::string>> all() {
        while (at_ < line_.size()) {
            const char c = line_[at_++];
            if (blanks.find(c) != std::string_view::npos)
                end_word();
            else if (!take(c))
                return fail(errc::invalid_argument, "has a quote that is not closed, or ends in a backslash");
        }
        end_word();
        if (words_.empty() || words_.front().empty()) return fail(errc::invalid_argument, "names no program");
        return std::move(words_);
    }

private:
    bool take(char c) {
        in_word_ = true;
        if (c == '\'') return take_quoted(c);
        if (c == '"') return take_quoted(c);
        if (c == '\\') {
            if (at_ == line_.size()) return false;
            word_ += line_[at_++];
            return true;
        }
        word_ += c;
        return true;
    }

    bool take_quoted(char quote) {
        constexpr std::string_view kept = "\"\\$`";
        while (at_ < line_.size()) {
            const char c = line_[at_++];
            if (c == quote) return true;
            const bool escapes = quote == '"' && c == '\\' && at_ < line_.size() &&
                                 kept.find(line_[at_]) != std::string_view::npos;
            word_ += escapes ? line_[at_++] : c;
        }
        return false;
    }

    void end_word() {
        if (in_word_) words_.push_back(std::exchange(word_, {}));
        in_word_ = false;
    }

    std::string_view line_;
    std::size_t at_{0};
    bool in_word_{false};
    std::string word_;
    std::vector<std::string> words_;
};

}  // namespace

result<std::vector<std::string>> command_words(std::string_view line) {
    if (line.find('\0') != std::string_view::npos) return fail(errc::invalid_argument, "holds a zero byte");
    return word_splitter(line).all();
}

}  // namespace millrace::aws
