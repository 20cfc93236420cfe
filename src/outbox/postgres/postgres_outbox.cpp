#include "postgres_outbox.hpp"

#include "outbox_reader.hpp"
#include "outbox_settling.hpp"

#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <utility>

namespace millrace {

namespace {

/// After a time with an empty table, statistics say so: a DELETE of 1,000 ranges then read the whole backlog
/// for each of them.
postgres::limits by_index(postgres::limits of) {
    of.by_index = true;
    return of;
}

}  // namespace

namespace {

postgres::table_name table_of(const postgres::server& server) {
    return server.table.value_or(postgres::table_name{"", "outbox"});
}

}  // namespace

struct postgres_outbox::impl {
    impl(host& on, postgres_outbox_options given)
        : options(std::move(given)),
          home(on),
          reader(table_of(options.server)),
          settling(table_of(options.server)),
          reading(
              on,
              [this](const postgres::stop_signal& stop) {
                  return postgres::connection::open(options.server, stop, by_index(options.reading));
              }
          ),
          writing(on, [this](const postgres::stop_signal& stop) {
              return postgres::connection::open(options.server, stop, by_index(options.writing));
          }) {}

    /// What the relay was told; of the host, and alive as long as a completion is.
    struct told {
        /// The states of the table that replies came from, the latest last: a relay may settle rows of an
        /// earlier one while it drains, but not of many.
        std::deque<std::pair<std::string, postgres::read_from>> read;
        row_id low_water;

        void note(const std::string& identity, postgres::read_from from) {
            constexpr std::size_t states_max = 8;
            std::erase_if(read, [&](const auto& one) { return one.first == identity; });
            read.emplace_back(identity, std::move(from));
            if (read.size() > states_max) read.pop_front();
        }
        [[nodiscard]] std::optional<postgres::read_from> state(const std::string& identity) const {
            for (const auto& one : read)
                if (one.first == identity) return one.second;
            return std::nullopt;
        }
    };

    postgres_outbox_options options;
    host& home;
    std::shared_ptr<told> known = std::make_shared<told>();
    postgres::outbox_reader reader;      // of the first thread
    postgres::outbox_settling settling;  // of the second
    postgres::pg_thread reading;
    postgres::pg_thread writing;
};

postgres_outbox::postgres_outbox(host& home, postgres_outbox_options options)
    : impl_(std::make_unique<impl>(home, std::move(options))) {}

postgres_outbox::~postgres_outbox() = default;

void postgres_outbox::fetch(fetch_request request, completion<fetch_reply> done) {
    impl_->reading.run<postgres::fetched>(
        [&reader = impl_->reader, request = std::move(request)](postgres::connection& db) {
            return reader.fetch(db, request);
        },
        [known = impl_->known, done = std::move(done)](result<postgres::fetched> got) {
            if (!got) {
                done(tl::unexpected(std::move(got.error())));
                return;
            }
            known->note(
                got->reply.table_identity,
                postgres::read_from{std::move(got->table), got->reply.replay_generation}
            );
            done(std::move(got->reply));
        }
    );
}

void postgres_outbox::remove(
    std::vector<id_range> delivered, table_mark mark, epoch mine, completion<std::uint64_t> done
) {
    const auto from = impl_->known->state(mark.table_identity);
    if (!from) {
        impl_->home.post([done = std::move(done)] { done(0); });
        return;
    }
    impl_->known->low_water = mark.low_water;
    impl_->writing.run<std::uint64_t>(
        [&settling = impl_->settling,
         from = *from,
         delivered = std::move(delivered),
         low_water = mark.low_water,
         mine](postgres::connection& db) { return settling.remove(db, from, delivered, low_water, mine); },
        std::move(done)
    );
}

void postgres_outbox::bury(bury_request request, epoch mine, completion<void> done) {
    const auto from = impl_->known->state(request.table_identity).value_or(postgres::read_from{});
    impl_->writing.run<void>(
        [&settling = impl_->settling, from, request = std::move(request), mine](postgres::connection& db) {
            return settling.bury(db, from, request, mine);
        },
        std::move(done)
    );
}

void postgres_outbox::start(completion<outbox_start> done) {
    impl_->reading.run<outbox_start>(
        [&reader = impl_->reader](postgres::connection& db) { return reader.start(db); },
        [known = impl_->known, done = std::move(done)](result<outbox_start> begin) {
            if (begin) known->low_water = begin->low_water;
            done(std::move(begin));
        }
    );
}

void postgres_outbox::watch(std::function<void()>) {}

void postgres_outbox::check(completion<void> done) {
    impl_->reading.run<void>(
        [&reader = impl_->reader](postgres::connection& db) { return reader.check(db); }, std::move(done)
    );
}

void postgres_outbox::look(completion<outbox_look> done) {
    impl_->reading.run<outbox_look>(
        [&reader = impl_->reader, low_water = impl_->known->low_water](postgres::connection& db) {
            return reader.look(db, low_water);
        },
        std::move(done)
    );
}

}  // namespace millrace
