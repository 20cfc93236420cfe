/// YAML as a tree of nodes that know where they stand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

namespace millrace::app {

struct yaml_node {
    enum class kind : std::uint8_t { null, scalar, list, map, alias };

    kind what{kind::null};
    YAML::Mark mark;
    std::string text;
    std::vector<yaml_node> items;  ///< Of a map: key, value, key, value.
};

/// For messages: `one value`, `a list`.
[[nodiscard]] std::string_view in_words(yaml_node::kind what);

/// Why this scalar does not stand on one line as it is written; empty when it does. The parser folds lines,
/// so an open quote swallows the keys behind it up to the next one.
[[nodiscard]] std::string_view beyond_its_line(
    const std::vector<std::string_view>& lines, const yaml_node& scalar
);

/// Builds the upper levels of the tree; what lies below a value is dropped. Aliases are not followed.
class tree_builder final : public YAML::EventHandler {
public:
    using kind = yaml_node::kind;

    void OnDocumentStart(const YAML::Mark&) override {}
    void OnDocumentEnd() override {}
    void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { add({kind::null, mark, {}, {}}); }
    void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { add({kind::alias, mark, {}, {}}); }
    void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t, const std::string& text)
        override {
        add({kind::scalar, mark, text, {}});
    }
    void OnSequenceStart(
        const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value
    ) override {
        open_.push_back({kind::list, mark, {}, {}});
    }
    void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value)
        override {
        open_.push_back({kind::map, mark, {}, {}});
    }
    void OnSequenceEnd() override { close(); }
    void OnMapEnd() override { close(); }

    [[nodiscard]] const yaml_node& root() const noexcept { return root_; }

private:
    static constexpr std::size_t levels = 5;  // The document, its sections, rules, one of them, its parts.

    void add(yaml_node node) {
        if (open_.empty())
            root_ = std::move(node);
        else if (open_.size() <= levels)
            open_.back().items.push_back(std::move(node));
    }

    void close() {
        yaml_node node = std::move(open_.back());
        open_.pop_back();
        add(std::move(node));
    }

    std::vector<yaml_node> open_;
    yaml_node root_;
};

}  // namespace millrace::app
