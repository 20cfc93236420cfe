// Shows that the oracles of a relay bite: each deliberate fault is seen by some seed, and by the oracle that
// is meant.

#include "breakage.hpp"

namespace millrace::sim {
namespace {

using RelayBreakage = Breakage;

// A channel that was stopped once never publishes again.
struct stuck_sink : sink_through {
    using sink_through::sink_through;
    void reset_main(completion<void>) override {}
};

TEST_F(RelayBreakage, ABadRowThatStopsTheOthers) {
    between.sink = put<stuck_sink, event_sink>();
    aim = [](scenario& s) {
        one_sick_shard(s);
        s.writers.guilty = 5;
        s.relay.on_poison = poison_policy::park_key;
    };
    expect_caught_as({"although nothing ails it"});
}

struct deletes_at_once : outbox_through {
    using outbox_through::outbox_through;
    void fetch(fetch_request request, completion<fetch_reply> done) override {
        inner_->fetch(
            std::move(request), alive_.guard([this, done = std::move(done)](result<fetch_reply> reply) {
                if (reply) {
                    std::vector<id_range> all;
                    for (const auto& row : reply->ahead->rows())
                        all.push_back({row.id, row.id});
                    inner_->remove(
                        std::move(all),
                        {{}, reply->table_identity},
                        mine_,
                        [](const result<std::uint64_t>&) {}
                    );
                }
                done(std::move(reply));
            })
        );
    }
    epoch mine_{1};
};

TEST_F(RelayBreakage, ADeleteBeforeTheAcknowledgement) {
    between.outbox = put<deletes_at_once, outbox_source>();
    expect_caught_as({"deleted without having been delivered"});
}

// Says that the rows were deleted, and leaves them.
struct no_deletes : outbox_through {
    using outbox_through::outbox_through;
    void remove(std::vector<id_range> delivered, table_mark mark, epoch mine, completion<std::uint64_t> done)
        override {
        (void)mine;
        inner_->remove(
            {},
            mark,
            epoch{},
            [delivered = std::move(delivered), done](const result<std::uint64_t>&) { done(delivered.size()); }
        );
    }
};

TEST_F(RelayBreakage, ADeleteThatIsDropped) {
    between.outbox = put<no_deletes, outbox_source>();
    expect_caught_as({"is published again"});
}

// Deletes only long after it was asked to.
struct late_deletes : outbox_through {
    using outbox_through::outbox_through;
    void remove(std::vector<id_range> delivered, table_mark mark, epoch mine, completion<std::uint64_t> done)
        override {
        waiting_.push_back([this, delivered = std::move(delivered), mark, mine, done] {
            inner_->remove(delivered, mark, mine, done);
        });
        if (waiting_.size() > 50) std::exchange(waiting_, {}).front()();
    }
    std::vector<std::function<void()>> waiting_;
};

TEST_F(RelayBreakage, MoreIsPublishedAgainAfterACrashThanWasInFlight) {
    between.outbox = put<late_deletes, outbox_source>();
    aim = [](scenario& s) { s.processes.crash_every = 3s; };
    expect_caught_as({"did not delete it"});
}

// Deletes whole ranges, also the ids that were never read.
struct wide_deletes : outbox_through {
    using outbox_through::outbox_through;
    void remove(std::vector<id_range> delivered, table_mark mark, epoch mine, completion<std::uint64_t> done)
        override {
        if (!delivered.empty()) delivered = {{delivered.front().first, delivered.back().last}};
        inner_->remove(std::move(delivered), mark, mine, std::move(done));
    }
};

TEST_F(RelayBreakage, ADeleteThatSpansIdsNeverRead) {
    between.outbox = put<wide_deletes, outbox_source>();
    expect_caught_as({"deleted without having been delivered"});
}

// Writes under whatever epoch the lease has now: a zombie decides the fate of rows.
struct no_epoch : outbox_through {
    using outbox_through::outbox_through;
    void bury(bury_request request, epoch mine, completion<void> done) override {
        for (std::uint64_t e = mine.value(); e < mine.value() + 8; ++e)
            inner_->bury(request, epoch{e}, [](const result<void>&) {});
        inner_->bury(std::move(request), mine, std::move(done));
    }
};

TEST_F(RelayBreakage, ABurialWithoutAnEpoch) {
    between.outbox = put<no_epoch, outbox_source>();
    aim = [](scenario& s) {
        s.relay.on_poison = poison_policy::park_key;
        s.writers.guilty = 30;
        s.one_machine = true;
        s.processes.crash_every = 400ms;
        s.outbox.late = 40;
        s.outbox.timeout = 100ms;
        s.outbox.late_max = 600ms;
    };
    expect_caught_as({"not by the owner"});
}

// Never looks for the ids that were skipped.
struct no_gaps : outbox_through {
    using outbox_through::outbox_through;
    void fetch(fetch_request request, completion<fetch_reply> done) override {
        request.gaps.clear();
        inner_->fetch(std::move(request), std::move(done));
    }
};

TEST_F(RelayBreakage, SkippedIdsThatAreNeverLookedFor) {
    between.outbox = put<no_gaps, outbox_source>();
    aim = [](scenario& s) { s.writers.open_max = 2s; };
    expect_caught_as({"was not delivered", "overtook"});
}

// Probes the gaps in a snapshot before the read-ahead.
struct gaps_first : outbox_through {
    using outbox_through::outbox_through;
    void fetch(fetch_request request, completion<fetch_reply> done) override {
        auto gaps = request;
        gaps.rows_max = 0;
        inner_->fetch(
            gaps, alive_.guard([this, request = std::move(request), done](const result<fetch_reply>& before) {
                if (!before) return done(before);
                auto ahead = request;
                ahead.gaps.clear();
                inner_->fetch(ahead, [done, before](result<fetch_reply> after) {
                    if (after) after->filled = before->filled;
                    done(std::move(after));
                });
            })
        );
    }
};

TEST_F(RelayBreakage, GapsProbedBeforeTheReadAhead) {
    between.outbox = put<gaps_first, outbox_source>();
    aim = [](scenario& s) {
        s.writers.open_max = 200ms;
        s.writers.events = 200;
        s.writers.keys = 2;
        s.outbox.latency_max = 60ms;
    };
    expect_caught_as({"overtook"});
}

// A refused row stops nothing.
struct gappy_sink : sink_through {
    using sink_through::sink_through;
    void publish(channel where, std::vector<outgoing_row> rows, epoch mine, completion<publish_outcome> done)
        override {
        if (where == channel::probe) return inner_->publish(where, std::move(rows), mine, std::move(done));
        auto left = std::make_shared<std::size_t>(rows.size());
        auto all = std::make_shared<publish_outcome>();
        for (auto& row : rows) {
            const auto id = row.row->id;
            inner_->publish(
                channel::probe,
                {std::move(row)},
                mine,
                [id, left, all, done](const result<publish_outcome>& outcome) {
                    if (!outcome) all->failures.push_back({id, outcome.error(), false});
                    if (outcome)
                        all->failures.insert(
                            all->failures.end(), outcome->failures.begin(), outcome->failures.end()
                        );
                    if (--*left == 0) done(*all);
                }
            );
        }
    }
};

TEST_F(RelayBreakage, ALaterRowOfALaneAfterAFailedOne) {
    between.sink = put<gappy_sink, event_sink>();
    aim = [](scenario& s) {
        s.writers.guilty = 10;
        s.sink.lost_request = 5;
    };
    expect_caught_as({"overtook"});
}

// Takes a request that was lost for delivered.
struct trusting_sink : sink_through {
    using sink_through::sink_through;
    void publish(channel where, std::vector<outgoing_row> rows, epoch mine, completion<publish_outcome> done)
        override {
        inner_->publish(
            where,
            std::move(rows),
            mine,
            [done = std::move(done)](result<publish_outcome> outcome) {
                done(outcome || !outcome.error().in_doubt ? std::move(outcome) : publish_outcome{});
            }
        );
    }
};

TEST_F(RelayBreakage, ALostRequestTakenForDelivered) {
    between.sink = put<trusting_sink, event_sink>();
    aim = [](scenario& s) { s.sink.lost_request = 5; };
    expect_caught_as({"deleted without having been delivered", "overtook"});
}

// Takes every refusal of a whole request for a verdict on each of its rows.
struct unjust_sink : sink_through {
    using sink_through::sink_through;
    void publish(channel where, std::vector<outgoing_row> rows, epoch mine, completion<publish_outcome> done)
        override {
        inner_->publish(
            where,
            std::move(rows),
            mine,
            [done = std::move(done)](result<publish_outcome> outcome) {
                if (outcome) {
                    for (auto& failure : outcome->failures)
                        failure.shared_blame = false;
                }
                done(std::move(outcome));
            }
        );
    }
};

TEST_F(RelayBreakage, TheInnocentRowsOfARefusedRequest) {
    between.sink = put<unjust_sink, event_sink>();
    aim = [](scenario& s) {
        s.writers.guilty = 10;
        s.broker.blamed_rows = 20;
        s.broker.capacity.request_rows_max = 1'000;
        s.relay.on_poison = poison_policy::park_row;
    };
    expect_caught_as({"innocent"});
}

}  // namespace
}  // namespace millrace::sim
