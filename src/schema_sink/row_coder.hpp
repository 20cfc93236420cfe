/// Encodes and frames the keys and values of rows by the rules, with the schemas of a registry.
///
/// Nothing waits here: a row whose schema is not known is told apart, and whoever watches is told when it may
/// have come. NULL stays NULL. What a rule concerns is never given out unframed. Memory: the topics used
/// last, with the schemas that they use. Belongs to the host's thread.
#pragma once

#include "compiled_schema.hpp"
#include "port/host.hpp"
#include "port/outbox_source.hpp"
#include "prepared_rules.hpp"
#include "schema_source.hpp"
#include "topic_coding.hpp"

#include <millrace/error.hpp>
#include <millrace/record.hpp>
#include <millrace/time.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace millrace::schema {

struct row_coder_limits {
    std::size_t topics_max{20'000};  ///< Beyond, those used longest ago are made anew when they are needed.
    std::size_t compiled_bytes_max{std::size_t{64} << 20};
};

class row_coder {
public:
    /// `rules` were prepared for `source`.
    row_coder(
        host& home,
        std::unique_ptr<registry::schema_source> source,
        std::vector<prepared_rule> rules,
        row_coder_limits limits = {}
    );
    row_coder(const row_coder&) = delete;
    row_coder& operator=(const row_coder&) = delete;
    ~row_coder();

    enum class state : std::uint8_t {
        untouched,  ///< No rule concerns it: it goes out as it is.
        ready,
        awaited,  ///< A schema is asked for, by this call or an earlier one.
        refused,  ///< `code` will say why, whatever the row holds.
    };
    [[nodiscard]] state look(const outbox_row& row);

    /// Makes of `row` what goes out; new bytes are stored in `memory`, the others stay where they are.
    /// Errors: `refused_record` is of this row, `refused_topic` of all of its topic until the registry gives
    /// another answer, `unavailable` while a schema is awaited.
    [[nodiscard]] result<outbox_row> code(const outbox_row& row, row_batch& memory);

    /// `changed` is called on the host, never inside another call, when awaited schemas may have come.
    void watch(std::function<void()> changed) { watchers_.push_back(std::move(changed)); }

    /// Asks for the schemas that rules name by their GUIDs, as far as the rules alone tell their subjects.
    /// `lacking` is called, with `invalid_config`, for each that comes without one.
    void look_for_guids(const std::function<void(const error&)>& lacking);

    [[nodiscard]] registry::schema_source& source() noexcept { return *source_; }
    [[nodiscard]] const registry::schema_source& source() const noexcept { return *source_; }
    [[nodiscard]] std::size_t topics() const noexcept { return topics_.size(); }
    [[nodiscard]] std::size_t compiled_bytes() const noexcept { return compiled_.bytes(); }

private:
    struct text_hash {
        using is_transparent = void;
        std::size_t operator()(std::string_view s) const noexcept { return std::hash<std::string_view>{}(s); }
    };
    using topic_list = std::list<topic_coding>;  // the one used last in front

    [[nodiscard]] topic_coding& topic_of(std::string_view name);
    [[nodiscard]] topic_coding make_topic(std::string_view name);
    void trim();

    /// The schema for a part of a row, or why there is none.
    [[nodiscard]] result<schema_use*> schema_for(topic_coding& topic, part_coding& of, const outbox_row& row);
    [[nodiscard]] result<schema_use*> choose(part_coding& of, const outbox_row& row);
    void make_ready(const part_coding& of, schema_use& use, const registry::schema_pointer& known);
    [[nodiscard]] std::optional<error> fault_of(
        const part_coding& of, schema_use& use, const registry::schema_pointer& known
    );
    void ask(const topic_coding& topic, const part_coding& of, schema_use& use);
    void told(const std::string& topic, record_part part, registry::schema_choice choice);
    [[nodiscard]] result<std::optional<std::string_view>> code_part(
        topic_coding& topic,
        part_coding& of,
        const outbox_row& row,
        std::optional<std::string_view> bytes,
        row_batch& memory,
        std::vector<record_header>& headers
    );
    void tell_watchers();
    [[nodiscard]] bool seen_now(schema_use& use);

    host& home_;
    std::unique_ptr<registry::schema_source> source_;
    std::vector<prepared_rule> rules_;
    const row_coder_limits limits_;
    compiled_schemas compiled_;
    topic_list topics_;
    std::unordered_map<std::string_view, topic_list::iterator> by_name_;
    std::string scratch_;
    std::vector<std::function<void()>> watchers_;
    std::optional<host::timer> telling_;
    mono_time tell_not_before_{};
    std::uint64_t turn_{1};
    bool turn_is_open_{false};
    lifetime alive_;
};

}  // namespace millrace::schema
