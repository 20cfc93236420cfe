#include "outbox_pauses.hpp"

#include "outbox_schema.hpp"

#include <utility>

namespace millrace::outbox_pauses {

namespace {

constexpr const char* everything = "";  // no row of an outbox has an empty topic

}  // namespace

result<void> create(sqlite::database& db) {
    const auto there = db.integer("SELECT count(*) FROM sqlite_schema WHERE name = 'outbox_paused'");
    if (!there) return tl::unexpected(there.error());
    if (*there > 0) return {};
    return db.execute(MILLRACE_SQL_CREATE_PAUSED);
}

result<paused> read(sqlite::database& db) {
    auto found = db.prepare("SELECT topic FROM outbox_paused ORDER BY topic");
    if (!found && found.error().code == errc::not_found) return paused{};
    if (!found) return tl::unexpected(std::move(found.error()));
    paused all;
    for (;;) {
        const auto row = found->step();
        if (!row) return tl::unexpected(row.error());
        if (!*row) return all;
        auto topic = found->text(0);
        if (topic == everything) {
            all.everything = true;
        } else {
            all.topics.push_back(std::move(topic));
        }
    }
}

result<void> add(sqlite::database& db, const std::optional<std::string>& topic) {
    if (auto made = create(db); !made) return made;
    return db.run(
        "INSERT OR IGNORE INTO outbox_paused (topic, paused_at) VALUES (?, " MILLRACE_SQL_NOW ")",
        topic.value_or(everything)
    );
}

result<void> remove(sqlite::database& db, const std::optional<std::string>& topic) {
    if (auto made = create(db); !made) return made;
    return db.run("DELETE FROM outbox_paused WHERE topic = ?", topic.value_or(everything));
}

}  // namespace millrace::outbox_pauses
