/// When a shard may be read again, where the stream limits how often and how much it is read.
///
/// A read needs a token, and waits until the bytes of those before are paid for. Others may read the same
/// shard: each refusal makes the share that is claimed smaller at once, and time lets it grow slowly, so that
/// all readers come to about the same. Pure; no thread safety.
#pragma once

#include <millrace/time.hpp>

#include <cstddef>
#include <cstdint>

namespace millrace {

class read_pace {
public:
    /// What the stream allows for one shard; zero: no limit.
    read_pace(std::uint64_t reads_per_second, std::uint64_t bytes_per_second);

    /// A read that was sent then brought so many bytes, or failed and brought none.
    void read(mono_time sent, std::size_t bytes, std::uint64_t random);

    /// A read was refused because there were too many, or too large ones.
    void throttled(mono_time now, std::uint64_t random);

    /// When the next read may be sent; in the past when at once.
    [[nodiscard]] mono_time next() const;

    /// The part of the limits that is claimed, above 0 and at most 1.
    [[nodiscard]] double share(mono_time now) const;

private:
    double read_cost_;  // nanoseconds at the full share, as the next
    double byte_cost_;
    mono_time token_at_{mono_time::min()};
    mono_time paid_at_{mono_time::min()};
    double usual_cost_{0};  // of a reply's bytes, as of the latest that had some
    double share_{1};       // just after the latest refusal
    mono_time refused_at_{};
};

}  // namespace millrace
