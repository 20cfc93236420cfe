/// What every outbox must do, the fakes and the real ones alike.
#pragma once

#include "port/outbox_source.hpp"

#include <millrace/event.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace millrace::test {

/// A table, seen from all sides: application, relay, operator.
class outbox_world {
public:
    virtual ~outbox_world() = default;

    [[nodiscard]] virtual outbox_source& source() = 0;

    /// Turns the source's host until the condition holds; false when it did not in a fair time.
    virtual bool run_until(const std::function<bool()>& condition) = 0;

    virtual row_id put(const event& what) = 0;
    virtual row_id put_malformed(const event& what) = 0;

    /// Leaves ids unused.
    virtual void skip_ids(std::int64_t count) = 0;

    /// A row under an id of the application's choice.
    virtual void put_at(row_id id, const event& what) = 0;

    /// The epoch in the lease row.
    virtual void own(epoch owner) = 0;
    virtual std::size_t replay(const lane_key& lane) = 0;
    virtual std::size_t drop(const lane_key& lane) = 0;

    /// The table is dropped and made anew, empty; ids start at the lowest again.
    virtual void recreate() = 0;

    struct dead {
        row_id id;
        std::string reason;
        std::string detail;
        std::uint32_t attempts;
        bool operator==(const dead&) const = default;
    };
    [[nodiscard]] virtual std::vector<dead> dead_rows() = 0;
};

struct outbox_source_case {
    std::string name;
    std::function<std::unique_ptr<outbox_world>()> make;
    bool remembers_low_water{true};
};

inline void PrintTo(const outbox_source_case& which, std::ostream* out) {
    *out << which.name;
}

}  // namespace millrace::test
