/// The store in which a group keeps its rows, as a test looks at it: not through the store's own code.
#pragma once

#include "support/group_check.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace millrace::e2e {

/// The names by which the rows of a group are found.
struct group_name {
    std::string stream;
    std::string group;
};

class group_state {
public:
    virtual ~group_state() = default;

    /// What `--state` gets; a port of 127.0.0.1 in place of the server's own leads through a proxy.
    [[nodiscard]] virtual std::string url(std::uint16_t port) const = 0;
    [[nodiscard]] virtual std::uint16_t port() const = 0;

    /// All rows of shards; nothing while the server does not answer or has no table yet.
    virtual std::optional<std::vector<support::shard_sample>> sample() = 0;
};

/// A table of its own at `http://127.0.0.1:PORT`.
[[nodiscard]] std::unique_ptr<group_state> dynamodb_state(const std::string& endpoint, group_name of);

/// A schema of its own in the database `postgresql://USER@127.0.0.1:PORT/NAME`.
[[nodiscard]] std::unique_ptr<group_state> postgres_state(const std::string& database, group_name of);

}  // namespace millrace::e2e
