/// Carries out `group import` on a stream and a lease store: sees that no session lives, then writes the
/// plan.
///
/// Lives on one host. May be repeated after any failure: what is written already stays.
#pragma once

#include "group/import.hpp"
#include "group/lapse.hpp"
#include "patience.hpp"
#include "port/host.hpp"
#include "port/lease_store.hpp"
#include "port/record_source.hpp"

#include <millrace/error.hpp>
#include <millrace/names.hpp>

#include <cstddef>
#include <memory>
#include <vector>

namespace millrace {

struct import_report {
    std::size_t written{0};          ///< Rows, without those that are inferred.
    std::vector<shard_id> inferred;  ///< As in `import_plan`, as the others.
    std::vector<shard_id> kept;
    std::vector<shard_id> gone;
    std::size_t same{0};
};

class group_import {
public:
    /// All references must outlive the object. `wait`: for a store or a stream that fails or is locked.
    group_import(
        host& loop,
        shard_lister& stream,
        lease_store& store,
        std::vector<imported_shard> lines,
        bool force,
        process_identity self,
        lapse_observer::process_gone gone,
        nanoseconds wait = patience::wait_default
    );
    ~group_import();

    /// Once. Errors: `conflict` while a session lives or when one began meanwhile, those of `plan_import`,
    /// `wrong_version`, or that of the store or the stream.
    void start(completion<import_report> done);

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace millrace
