/// Identifiers, each with a type of its own, so that a worker cannot be passed for a shard.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace millrace {

/// A value that only mixes with values of the same tag.
template <class Tag, class T>
class strong {
public:
    strong() = default;
    explicit strong(T value) : value_(std::move(value)) {}

    [[nodiscard]] const T& value() const noexcept { return value_; }
    auto operator<=>(const strong&) const = default;

private:
    T value_{};
};

/// A shard of a stream, or anything else that one worker at a time processes in order.
using shard_id = strong<struct shard_id_tag, std::string>;

/// A process of a group, by a name that the user chose or that was made (host, pid, random).
using worker_id = strong<struct worker_id_tag, std::string>;

/// One life of a worker: random, never used twice. Empty means nobody.
using incarnation = strong<struct incarnation_tag, std::string>;

/// The fencing token of a lease: grows with every change of owner and never falls.
using epoch = strong<struct epoch_tag, std::uint64_t>;

/// Grows by one with every write of a row; a write names the version that it expects.
using version = strong<struct version_tag, std::uint64_t>;

/// Random mark of one write, kept in the row: in doubt, only a row that bears it proves that write.
using write_id = strong<struct write_id_tag, std::uint64_t>;

/// Orders the rows of an outbox.
using row_id = strong<struct row_id_tag, std::int64_t>;

}  // namespace millrace

template <class Tag, class T>
struct std::hash<millrace::strong<Tag, T>> {
    std::size_t operator()(const millrace::strong<Tag, T>& id) const noexcept {
        return std::hash<T>{}(id.value());
    }
};
