#include "sqlite_outbox.hpp"

#include "db_thread.hpp"
#include "outbox_pauses.hpp"
#include "outbox_schema.hpp"
#include "outbox_tables.hpp"

#include <memory>
#include <string>
#include <utility>

namespace millrace {

struct sqlite_outbox::impl {
    impl(host& home, sqlite_outbox_options given)
        : options(std::move(given)),
          thread(
              home,
              [this] { return open(); },
              {.watch_min = options.watch_min, .watch_max = options.watch_max}
          ) {}

    result<sqlite::database> open() {
        auto db = sqlite::database::open(
            options.path,
            {.mode = sqlite::open_mode::must_exist,
             .busy_timeout = options.busy_timeout,
             .sync = sqlite::durability::normal,
             .name = options.name,
             .when_missing = "create it with `millrace outbox init`, or check the path"}
        );
        if (!db) return db;
        auto usable = outbox_schema::check(db->handle(), db->name());
        if (usable) usable = outbox_schema::upgrade(db->handle(), db->name());
        if (!usable) return tl::unexpected(std::move(usable.error()));
        if (auto made = outbox_pauses::create(*db); !made) return tl::unexpected(std::move(made.error()));
        view.reopened();
        return db;
    }

    sqlite_outbox_options options;
    outbox_view view;  // of the thread
    sqlite::db_thread thread;
};

sqlite_outbox::sqlite_outbox(host& home, sqlite_outbox_options options)
    : impl_(std::make_unique<impl>(home, std::move(options))) {}

sqlite_outbox::~sqlite_outbox() = default;

void sqlite_outbox::fetch(fetch_request request, completion<fetch_reply> done) {
    impl_->thread.run<fetch_reply>(
        [&view = impl_->view, request = std::move(request)](sqlite::database& db) {
            return outbox_tables::fetch(db, view, request);
        },
        std::move(done)
    );
}

void sqlite_outbox::remove(
    std::vector<id_range> delivered, table_mark mark, epoch mine, completion<std::uint64_t> done
) {
    impl_->thread.run<std::uint64_t>(
        [&view = impl_->view, delivered = std::move(delivered), mine, from = std::move(mark.table_identity)](
            sqlite::database& db
        ) {
            view.reported(from);
            return outbox_tables::remove(db, view, delivered, mine);
        },
        std::move(done)
    );
}

void sqlite_outbox::bury(bury_request request, epoch mine, completion<void> done) {
    impl_->thread.run<void>(
        [&view = impl_->view, request = std::move(request), mine](sqlite::database& db) {
            view.reported(request.table_identity);
            return outbox_tables::bury(db, view, request, mine);
        },
        std::move(done)
    );
}

void sqlite_outbox::start(completion<outbox_start> done) {
    impl_->thread.run<outbox_start>(
        [](sqlite::database& db) {
            return outbox_tables::parked_lanes(db).map([](std::vector<lane_key> parked) {
                outbox_start from;
                from.parked = std::move(parked);
                return from;
            });
        },
        std::move(done)
    );
}

void sqlite_outbox::check(completion<void> done) {
    impl_->thread.run<void>([](sqlite::database& db) { return outbox_tables::check(db); }, std::move(done));
}

void sqlite_outbox::look(completion<outbox_look> done) {
    impl_->thread.run<outbox_look>(
        [](sqlite::database& db) { return outbox_tables::look(db); }, std::move(done)
    );
}

void sqlite_outbox::watch(std::function<void()> changed) {
    impl_->thread.watch(std::move(changed));
}

}  // namespace millrace
