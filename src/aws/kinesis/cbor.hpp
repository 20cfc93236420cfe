/// CBOR as the AWS APIs write it: a writer, and a reader that takes one value after the other.
///
/// The reader is asked for what is expected next; false means that the bytes are something else, and then it
/// is of no further use. Definite and indefinite lengths and unexpected tags are read; nesting is bounded.
#pragma once

#include <millrace/time.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace millrace::aws::kinesis {

class cbor_writer {
public:
    void begin_map() { out_.push_back('\xbf'); }
    void begin_list() { out_.push_back('\x9f'); }
    void end() { out_.push_back('\xff'); }
    void end_list() { end(); }
    void end_map() { end(); }

    void key(std::string_view name) { text(name); }
    void text(std::string_view value) { string(3, value); }
    void blob(std::string_view bytes) { string(2, bytes); }
    void integer(std::int64_t value);
    void time(wall_time value);  ///< Tag 1 and milliseconds, as Kinesis wants it.

    void reserve(std::size_t bytes) { out_.reserve(bytes); }
    [[nodiscard]] std::string take() { return std::move(out_); }

private:
    void head(unsigned major, std::uint64_t value);
    void string(unsigned major, std::string_view bytes);

    std::string out_;
};

class cbor_reader {
public:
    static constexpr int depth_max = 32;

    /// The bytes must outlive the reader, which may change them (`blob`).
    explicit cbor_reader(std::string& bytes) : bytes_(bytes) {}

    /// Calls `each(name)` for every entry, which must take the value.
    template <class F>
    [[nodiscard]] bool map(F&& each) {
        length left;
        if (!enter(kind::map, left)) return false;
        while (more(left)) {
            if (!take() || item_.is != kind::text) return false;
            if (!each(item_.bytes)) return false;
        }
        return leave();
    }

    /// Calls `each()` for every element, which must take it.
    template <class F>
    [[nodiscard]] bool list(F&& each) {
        length left;
        if (!enter(kind::list, left)) return false;
        while (more(left))
            if (!each()) return false;
        return leave();
    }

    [[nodiscard]] bool null();                       ///< Takes the value if it is null.
    [[nodiscard]] bool text(std::string& out);       ///< Also one that comes in parts.
    [[nodiscard]] bool text(std::string_view& out);  ///< Into the input; in one part.

    /// Likewise. Text is taken for base64, as some stand-ins of the service send, and decoded in its place.
    [[nodiscard]] bool blob(std::string_view& out);
    [[nodiscard]] bool integer(std::int64_t& out);
    [[nodiscard]] bool time(wall_time& out);  ///< Integers are milliseconds, fractions seconds.
    [[nodiscard]] bool skip();

    /// Nothing is left, and nothing was wrong.
    [[nodiscard]] bool at_end() const noexcept { return !failed_ && !held_ && at_ == bytes_.size(); }
    [[nodiscard]] std::size_t position() const noexcept { return at_; }

private:
    enum class kind : std::uint8_t {
        none,
        natural,
        negative,
        bytes,
        text,
        list,
        map,
        tag,
        real,
        null,
        simple,
        stop
    };
    struct item {
        kind is{kind::none};
        bool endless{false};      // of bytes, text, lists, maps: until a stop
        std::uint64_t number{0};  // the value, or the length of a list or map
        double real{0};
        std::string_view bytes;
    };
    struct length {
        std::uint64_t count{0};
        bool endless{false};
    };
    struct callbacks;

    [[nodiscard]] bool take();  // the next item, tags passed over
    [[nodiscard]] bool look();  // the same, and it stays the next one
    [[nodiscard]] bool enter(kind wanted, length& left);
    [[nodiscard]] bool more(length& left);
    [[nodiscard]] bool leave() noexcept;
    [[nodiscard]] bool view(kind wanted, std::string_view& out);
    [[nodiscard]] bool skip_parts(kind of);
    [[nodiscard]] bool nonsense() noexcept;

    std::string& bytes_;
    std::size_t at_{0};
    item item_;
    int depth_{0};
    bool held_{false};  // item_ is still to be taken
    bool failed_{false};
};

}  // namespace millrace::aws::kinesis
