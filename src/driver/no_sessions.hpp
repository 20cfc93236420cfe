/// Sees to it that no session of a group lives: refuses while one renews itself, waits for one that does not
/// until it has lapsed, and ends it.
///
/// Lives on one host. A session may begin right after it: who writes then must look again.
#pragma once

#include "group/lapse.hpp"
#include "patience.hpp"
#include "port/host.hpp"
#include "port/lease_store.hpp"

#include <millrace/error.hpp>

#include <cstddef>
#include <memory>
#include <string>

namespace millrace {

class no_sessions {
public:
    /// All references must outlive the object. `force` ends also those that live; `advice` follows "stop all
    /// workers first" in the refusal.
    no_sessions(
        host& loop,
        lease_store& store,
        bool force,
        std::string advice,
        process_identity self,
        lapse_observer::process_gone gone,
        patience& still
    );
    ~no_sessions();

    /// Once. Gives how many sessions were ended. Errors: `conflict` while a session lives, or that of the
    /// store.
    void start(completion<std::size_t> done);

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace millrace
