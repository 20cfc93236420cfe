/// JSON with the same interface as `cbor.hpp`: blobs are base64, times are seconds with a fraction.
#pragma once

#include <millrace/time.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <boost/json/value.hpp>

namespace millrace::aws::kinesis {

class json_writer {
public:
    void begin_map() { open('{'); }
    void begin_list() { open('['); }
    void end_map() { close('}'); }
    void end_list() { close(']'); }

    void key(std::string_view name);
    void text(std::string_view value);  ///< UTF-8.
    void blob(std::string_view bytes);
    void integer(std::int64_t value);
    void time(wall_time value);

    void reserve(std::size_t bytes) { out_.reserve(bytes); }
    [[nodiscard]] std::string take() { return std::move(out_); }

private:
    void separate();
    void open(char bracket);
    void close(char bracket);
    void quoted(std::string_view value);

    std::string out_;
    bool first_{true};  // of its map or list, or behind a key
};

/// Walks a parsed document.
class json_reader {
public:
    static constexpr std::size_t depth_max = 32;

    /// Views are given into `kept`, to which the texts and decoded blobs that are asked for are appended; it
    /// must have room for as many bytes as the document.
    json_reader(const boost::json::value& document, std::string& kept) : at_(&document), kept_(&kept) {}

    template <class F>
    [[nodiscard]] bool map(F&& each) {
        const auto* const object = at_->if_object();
        if (object == nullptr) return false;
        for (const auto& entry : *object) {
            at_ = &entry.value();
            const auto name = entry.key();
            if (!each(std::string_view(name.data(), name.size()))) return false;
        }
        return true;
    }

    template <class F>
    [[nodiscard]] bool list(F&& each) {
        const auto* const array = at_->if_array();
        if (array == nullptr) return false;
        for (const auto& element : *array) {
            at_ = &element;
            if (!each()) return false;
        }
        return true;
    }

    [[nodiscard]] bool null() const { return at_->is_null(); }
    [[nodiscard]] bool text(std::string& out) const;
    [[nodiscard]] bool text(std::string_view& out);
    [[nodiscard]] bool blob(std::string_view& out);
    [[nodiscard]] bool integer(std::int64_t& out) const;
    [[nodiscard]] bool time(wall_time& out) const;
    [[nodiscard]] static bool skip() { return true; }

private:
    const boost::json::value* at_;
    std::string* kept_;
};

}  // namespace millrace::aws::kinesis
