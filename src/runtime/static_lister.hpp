/// A listing of named things that never split, merge or close: an outbox, or what an application shares.
#pragma once

#include "port/host.hpp"
#include "port/record_source.hpp"

#include <string>
#include <utility>
#include <vector>

namespace millrace {

class static_lister final : public shard_lister {
public:
    /// Completions come on `home`, which must outlive the lister.
    static_lister(host& home, std::vector<std::string> names) : home_(home), names_(std::move(names)) {}

    void list_shards(completion<stream_listing> done) override {
        stream_listing listing{.identity = "named", .now = home_.wall()};
        listing.shards.reserve(names_.size());
        for (const auto& name : names_)
            listing.shards.push_back(listed_shard{.shard = shard_id(name), .closed = true});
        home_.post([done = std::move(done), listing = std::move(listing)] { done(listing); });
    }

private:
    host& home_;
    std::vector<std::string> names_;
};

}  // namespace millrace
