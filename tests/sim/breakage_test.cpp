// Shows that the oracles of a group bite: each deliberate fault is seen by some seed, and by the oracle that
// is meant.

#include "breakage.hpp"

#include <map>
#include <optional>

namespace millrace::sim {
namespace {

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

TEST_F(Breakage, MoreComesAgainAfterACrashThanTheIntervalAllows) {
    between.loop_store = put<lazy_checkpoints, lease_store>();
    aim = [](scenario& s) { s.processes.crash_every = 2s; };
    expect_caught_as({"checkpoints are due"});
}

// Gives the handler a part of each batch twice.
struct repeating_handler : handler_through {
    using handler_through::handler_through;
    result<handled> handle(const std::shared_ptr<const record_batch>& batch, const delivery& how) override {
        (void)handler_through::handle(batch, how);
        auto again = how;
        again.attempt = 2;
        return handler_through::handle(batch, again);
    }
};

TEST_F(Breakage, ARecordThatComesAgainWithoutACause) {
    between.handler = put<repeating_handler, record_handler>();
    expect_caught_as({"failed only"});
}

}  // namespace
}  // namespace millrace::sim
