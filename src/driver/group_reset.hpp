/// Carries out `group reset` on a lease store: waits for or ends the sessions, then writes the plan.
///
/// Lives on one host. A session that renews itself refuses the reset unless it is forced; one that does not
/// is observed until it has lapsed, which takes its lease time. May be repeated after any failure.
#pragma once

#include "group/lapse.hpp"
#include "group/reset.hpp"
#include "patience.hpp"
#include "port/host.hpp"
#include "port/lease_store.hpp"

#include <millrace/error.hpp>

#include <cstddef>
#include <memory>

namespace millrace {

struct reset_report {
    std::size_t sessions_ended{0};
    std::size_t shards_reset{0};
};

class group_reset {
public:
    /// All references must outlive the object. `wait`: for a store that fails or is locked.
    group_reset(
        host& loop,
        lease_store& store,
        reset_request request,
        process_identity self,
        lapse_observer::process_gone gone,
        nanoseconds wait = patience::wait_default
    );
    ~group_reset();

    /// Once. Errors: `conflict` while a session lives, `wrong_version`, or that of the store.
    void start(completion<reset_report> done);

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace millrace
