// Shows that the oracles bite: each deliberate fault is seen by some seed, and by the oracle that is meant.

#include "pass_through.hpp"
#include "world.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace millrace::sim {
namespace {

using words = std::vector<std::string>;

template <class Wrapper, class Port>
seam<Port> put() {
    return [](std::unique_ptr<Port> inner) -> std::unique_ptr<Port> {
        return std::make_unique<Wrapper>(std::move(inner));
    };
}

struct Breakage : testing::Test {
    static constexpr std::uint64_t seeds_max = 150;

    seams between;
    std::function<void(scenario&)> aim = [](scenario&) {};

    void expect_caught_as(const words& any_of) const {
        std::string seen;
        for (std::uint64_t seed = 1; seed <= seeds_max; ++seed) {
            auto plan = draw_scenario(seed);
            aim(plan);
            const auto report = world(plan, between, false).run();
            for (const auto& failure : report.failures) {
                const auto meant = std::any_of(any_of.begin(), any_of.end(), [&](const std::string& word) {
                    return failure.find(word) != std::string::npos;
                });
                if (meant) return;
                if (seen.size() < 2'000) seen += "\n  " + std::to_string(seed) + ": " + failure;
            }
        }
        FAIL() << "no oracle caught it as meant within " << seeds_max << " seeds; seen:" << seen;
    }
};

// ---- leases ----

// As gosoline does: whoever is refused reads the row and writes over it.
struct blind_overwrite : store_through {
    using store_through::store_through;
    void write(lease_row row, std::optional<version> expected, completion<void> done) override {
        inner_->write(row, expected, alive_.guard([this, row, done](const result<void>& outcome) {
            if (outcome || outcome.error().code != errc::conflict) return done(outcome);
            inner_->read(
                key_of(row),
                alive_.guard(
                    [this, row, done, refused = outcome](const result<std::optional<lease_row>>& stored) {
                        auto again = row;
                        auto* shard = std::get_if<shard_row>(&again);
                        if (!stored || !*stored || shard == nullptr) return done(refused);
                        shard->version = version{version_of(**stored).value() + 1};
                        inner_->write(again, version_of(**stored), done);
                    }
                )
            );
        }));
    }
};

TEST_F(Breakage, BlindOverwriteOfALease) {
    between.loop_store = put<blind_overwrite, lease_store>();
    expect_caught_as({"epoch fell", "checkpoint went back", "used before", "write id", "stands"});
}

// A take that does not raise the epoch.
struct old_epoch : store_through {
    using store_through::store_through;
    void write(lease_row row, std::optional<version> expected, completion<void> done) override {
        if (auto* shard = std::get_if<shard_row>(&row)) shard->epoch = epoch{1};
        inner_->write(std::move(row), expected, std::move(done));
    }
};

TEST_F(Breakage, ATakeUnderAnEpochThatWasUsedBefore) {
    between.loop_store = put<old_epoch, lease_store>();
    expect_caught_as({"used before"});
}

// The owner never hears that its time is over.
struct endless_session : session_through {
    using session_through::session_through;
    [[nodiscard]] mono_time deadline(const incarnation&) const override { return mono_time::max(); }
};

TEST_F(Breakage, AnOwnerThatDoesNotCheckItsDeadline) {
    between.session = [](session_view& inner) { return std::make_unique<endless_session>(inner); };
    aim = [](scenario& s) {
        s.handler.waits_max = 300ms;
        s.processes.pause_every = 700ms;
        s.processes.pause_max = 3 * s.session.lease;
    };
    expect_caught_as({"handles under epoch"});
}

// Each worker seems to have promised a shorter lease than it did.
struct short_leases : store_through {
    using store_through::store_through;
    void list_workers(completion<std::vector<worker_row>> done) override {
        inner_->list_workers([done = std::move(done)](result<std::vector<worker_row>> rows) {
            if (rows) {
                for (auto& row : *rows)
                    row.lease /= 20;
            }
            done(std::move(rows));
        });
    }
};

TEST_F(Breakage, ASessionThatIsEndedTooEarly) {
    between.loop_store = put<short_leases, lease_store>();
    expect_caught_as({"of silence"});
}

// Answers with the listing before: as if it had begun before the shard rows were read.
struct stale_workers : store_through {
    using store_through::store_through;
    void list_workers(completion<std::vector<worker_row>> done) override {
        inner_->list_workers(alive_.guard([this,
                                           done = std::move(done)](result<std::vector<worker_row>> rows) {
            if (rows) std::swap(*rows, last_);
            done(std::move(rows));
        }));
    }
    std::vector<worker_row> last_;
};

TEST_F(Breakage, AWorkerListingOlderThanTheShardRows) {
    between.loop_store = put<stale_workers, lease_store>();
    expect_caught_as({"taken while the session of its owner stands"});
}

// Takes a lost reply for success.
struct no_doubt : store_through {
    using store_through::store_through;
    void write(lease_row row, std::optional<version> expected, completion<void> done) override {
        inner_->write(std::move(row), expected, [done = std::move(done)](result<void> outcome) {
            done(!outcome && outcome.error().in_doubt ? result<void>{} : std::move(outcome));
        });
    }
};

TEST_F(Breakage, AWriteInDoubtTakenForDone) {
    between.loop_store = put<no_doubt, lease_store>();
    aim = [](scenario& s) { s.store.lost_request = 10; };
    expect_caught_as({"handles under epoch"});
}

// ---- shards ----

struct one_parent : source_through {
    using source_through::source_through;
    void list_shards(completion<stream_listing> done) override {
        inner_->list_shards([done = std::move(done)](result<stream_listing> listing) {
            if (listing) {
                for (auto& shard : listing->shards)
                    if (shard.parents.size() > 1) shard.parents.pop_back();
            }
            done(std::move(listing));
        });
    }
};

TEST_F(Breakage, AChildBeforeItsSecondParent) {
    between.source = put<one_parent, record_source>();
    aim = [](scenario& s) {
        s.topic.shards = 5;
        s.processes.reshard_every = 600ms;
    };
    expect_caught_as({"before its parent"});
}

// Acknowledges what the handler has not.
struct hasty_handler : handler_through {
    using handler_through::handler_through;
    result<handled> handle(const std::shared_ptr<const record_batch>& batch, const delivery& how) override {
        how.acknowledge.all();
        return handler_through::handle(batch, how);
    }
};

TEST_F(Breakage, ACheckpointPastAnUnacknowledgedRecord) {
    between.handler = put<hasty_handler, record_handler>();
    aim = [](scenario& s) {
        s.handler.later = 100;
        s.handler.takes_max = 800ms;
        s.group.checkpoint_every = 100ms;
    };
    expect_caught_as({"passes the unacknowledged"});
}

// Goes on at the tip when a cursor has expired.
struct forgetful_source : source_through {
    using source_through::source_through;
    void open(shard_id shard, start_position start, completion<read_cursor> done) override {
        if (std::holds_alternative<from::after>(start)) start = from::latest{};
        inner_->open(std::move(shard), start, std::move(done));
    }
};

TEST_F(Breakage, AReaderThatGoesOnAtTheTip) {
    between.source = put<forgetful_source, record_source>();
    expect_caught_as({"was next"});
}

// Takes an empty page for the end of the shard.
struct impatient_source : source_through {
    using source_through::source_through;
    void read(shard_id shard, read_cursor cursor, read_limits limits, completion<read_reply> done) override {
        inner_->read(
            std::move(shard),
            std::move(cursor),
            limits,
            [done = std::move(done)](result<read_reply> reply) {
                if (reply && reply->records->records().empty()) reply->next.reset();
                done(std::move(reply));
            }
        );
    }
};

TEST_F(Breakage, AnEmptyPageTakenForTheEnd) {
    between.source = put<impatient_source, record_source>();
    expect_caught_as({"finished while it is open", "records open"});
}

// Gives only the last record of each page.
struct losing_source : source_through {
    using source_through::source_through;
    void read(shard_id shard, read_cursor cursor, read_limits limits, completion<read_reply> done) override {
        inner_->read(
            std::move(shard),
            std::move(cursor),
            limits,
            [done = std::move(done)](result<read_reply> reply) {
                if (reply && reply->records->records().size() > 1) {
                    auto batch = std::make_shared<record_batch>(reply->records->shard());
                    const auto records = reply->records->records();
                    batch->add(records.back());
                    kept_.push_back(reply->records);
                    reply->records = batch;
                }
                done(std::move(reply));
            }
        );
    }
    static inline std::vector<std::shared_ptr<const record_batch>> kept_;
};

TEST_F(Breakage, APageThatLosesRecords) {
    between.source = put<losing_source, record_source>();
    expect_caught_as({"was next", "leaves out"});
    losing_source::kept_.clear();
}

// One shard that fails spoils the client for all.
struct contagious_source : source_through {
    using source_through::source_through;
    void read(shard_id shard, read_cursor cursor, read_limits limits, completion<read_reply> done) override {
        inner_->read(
            std::move(shard),
            std::move(cursor),
            limits,
            alive_.guard([this, done = std::move(done)](result<read_reply> reply) {
                if (!reply) why_ = reply.error();
                done(why_ ? tl::unexpected(*why_) : std::move(reply));
            })
        );
    }
    std::optional<error> why_;
};

void one_sick_shard(scenario& s) {
    s.sick_shard = true;
    s.topic.shards = 4;
    s.handler = {};
    s.processes = {};
    s.faults_until = s.writers.until + s.writers.open_max + 7s;
}

TEST_F(Breakage, ASickShardThatStopsTheOthers) {
    between.source = put<contagious_source, record_source>();
    aim = one_sick_shard;
    expect_caught_as({"although nothing ails it"});
}

// Says that a checkpoint was written, and writes it only when the lease changes.
struct lazy_checkpoints : store_through {
    using store_through::store_through;
    void list_shards(completion<std::vector<shard_row>> done) override {
        inner_->list_shards(alive_.guard([this, done = std::move(done)](result<std::vector<shard_row>> rows) {
            if (rows) {
                for (const auto& row : *rows)
                    seen_[row.shard] = row;
            }
            done(std::move(rows));
        }));
    }
    void write(lease_row row, std::optional<version> expected, completion<void> done) override {
        auto* shard = std::get_if<shard_row>(&row);
        if (shard != nullptr && expected && seen_[shard->shard].owner == shard->owner && !shard->finished_at)
            shard->checkpoint = seen_[shard->shard].checkpoint;
        if (shard != nullptr) seen_[shard->shard] = *shard;
        inner_->write(std::move(row), expected, std::move(done));
    }
    std::map<shard_id, shard_row> seen_;
};

TEST_F(Breakage, ACheckpointThatIsNotWrittenInTime) {
    between.loop_store = put<lazy_checkpoints, lease_store>();
    expect_caught_as({"not below the checkpoint"});
}

// ---- relay ----

// A channel that was stopped once never publishes again.
struct stuck_sink : sink_through {
    using sink_through::sink_through;
    void reset_main(completion<void>) override {}
};

TEST_F(Breakage, ABadRowThatStopsTheOthers) {
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
                    inner_->remove(std::move(all), mine_, [](const result<std::uint64_t>&) {});
                }
                done(std::move(reply));
            })
        );
    }
    epoch mine_{1};
};

TEST_F(Breakage, ADeleteBeforeTheAcknowledgement) {
    between.outbox = put<deletes_at_once, outbox_source>();
    expect_caught_as({"deleted without having been delivered"});
}

// Deletes whole ranges, also the ids that were never read.
struct wide_deletes : outbox_through {
    using outbox_through::outbox_through;
    void remove(std::vector<id_range> delivered, epoch mine, completion<std::uint64_t> done) override {
        if (!delivered.empty()) delivered = {{delivered.front().first, delivered.back().last}};
        inner_->remove(std::move(delivered), mine, std::move(done));
    }
};

TEST_F(Breakage, ADeleteThatSpansIdsNeverRead) {
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

TEST_F(Breakage, ABurialWithoutAnEpoch) {
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

TEST_F(Breakage, SkippedIdsThatAreNeverLookedFor) {
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

TEST_F(Breakage, GapsProbedBeforeTheReadAhead) {
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

TEST_F(Breakage, ALaterRowOfALaneAfterAFailedOne) {
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

TEST_F(Breakage, ALostRequestTakenForDelivered) {
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

TEST_F(Breakage, TheInnocentRowsOfARefusedRequest) {
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
