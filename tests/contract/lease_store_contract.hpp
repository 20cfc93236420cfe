/// What every lease store must do, the fakes and the real ones alike.
#pragma once

#include "contract/loop_host.hpp"
#include "port/lease_store.hpp"

#include <functional>
#include <memory>
#include <string>

#include <gtest/gtest.h>

namespace millrace::test {

/// Where the rows of one group lie; each store that it makes sees the same rows.
class lease_world {
public:
    virtual ~lease_world() = default;
    [[nodiscard]] virtual std::unique_ptr<lease_store> make(host& home) = 0;
};

struct lease_store_case {
    std::string name;
    std::function<std::unique_ptr<lease_world>()> make;
};

inline void PrintTo(const lease_store_case& which, std::ostream* out) {
    *out << which.name;
}

}  // namespace millrace::test
