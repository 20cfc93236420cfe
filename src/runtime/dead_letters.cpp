#include "dead_letters.hpp"

#include <millrace/outbox.hpp>

#include <utility>
#include <vector>

#include <fmt/format.h>

namespace millrace {

namespace {

std::optional<std::string> owned(const std::optional<std::string_view>& bytes) {
    return bytes ? std::optional<std::string>(*bytes) : std::nullopt;
}

result<void> add_to_outbox(sqlite::database& db, const event& what) {
    auto open = db.begin(sqlite::transaction_kind::immediate);
    if (!open) return tl::unexpected(std::move(open.error()));
    // The default limit is meant for applications; what was in the stream must find room here.
    auto writer =
        outbox_writer::open(db.handle(), {.event_bytes_max = outbox_writer_options::event_bytes_limit});
    if (!writer) return tl::unexpected(std::move(writer.error()));
    if (auto added = writer->add(what); !added) return tl::unexpected(std::move(added.error()));
    return open->commit();
}

/// A handler may say as much as it likes, and no target takes headers of any size.
std::string cut(std::string text) {
    if (text.size() <= dead_letter_error_max) return text;
    std::size_t end = dead_letter_error_max;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)
        --end;  // not within a character
    text.resize(end);
    return text;
}

/// The event as the only row of a batch.
std::shared_ptr<const row_batch> row_of(const event& what) {
    auto batch = std::make_shared<row_batch>();
    const auto keep = [&](const std::optional<std::string>& bytes) {
        return bytes ? std::optional<std::string_view>(batch->store(*bytes)) : std::nullopt;
    };
    outbox_row row{.id = row_id(1), .topic = batch->store(what.topic)};
    row.key = keep(what.key);
    row.value = keep(what.value);
    std::vector<record_header> headers;
    for (const auto& h : what.headers)
        headers.push_back({batch->store(h.name), keep(h.value)});
    row.headers = batch->store(std::move(headers));
    batch->add(row);
    return batch;
}

}  // namespace

event dead_letter(
    const record_batch& batch,
    std::size_t index,
    const error& why,
    const std::string& origin,
    const std::string& topic
) {
    const auto& record = batch.records()[index];
    event made{.topic = topic, .key = owned(record.key), .value = owned(record.data)};
    for (const auto& h : record.headers)
        made.headers.push_back({std::string(h.name), owned(h.value)});
    const auto& at = record.position;
    made.headers.push_back({"millrace-stream", origin});
    made.headers.push_back({"millrace-shard", batch.shard().value()});
    made.headers.push_back(
        {"millrace-sequence", fmt::format("{}/{}", at.sequence.to_string(), at.sub_sequence)}
    );
    made.headers.push_back({"millrace-error", cut(fmt::format("{}: {}", name_of(why.code), why.detail))});
    return made;
}

outbox_dead_letters::outbox_dead_letters(host& home, std::string path, std::string name, std::string origin)
    : origin_(std::move(origin)), thread_(home, [path = std::move(path), name = std::move(name)] {
          return sqlite::database::open(
              path,
              {.mode = sqlite::open_mode::must_exist,
               .name = name,
               .when_missing = "make it with \"millrace outbox init\""}
          );
      }) {}

void outbox_dead_letters::put(
    std::shared_ptr<const record_batch> batch, std::size_t index, error why, completion<void> done
) {
    thread_.run<void>(
        [letter = dead_letter(*batch, index, why, origin_, origin_)](sqlite::database& db) {
            return add_to_outbox(db, letter);
        },
        std::move(done)
    );
}

void outbox_dead_letters::look(completion<void> done) {
    thread_.run<void>(
        [](sqlite::database& db) -> result<void> {
            if (const auto writer = outbox_writer::open(db.handle()); !writer) {
                return tl::unexpected(writer.error());
            }
            return {};
        },
        std::move(done)
    );
}

void sink_dead_letters::put(
    std::shared_ptr<const record_batch> batch, std::size_t index, error why, completion<void> done
) {
    auto rows = row_of(dead_letter(*batch, index, why, origin_, topic_));
    const auto* row = rows->rows().data();
    sink_->publish(
        channel::probe,
        {outgoing_row{row, std::move(rows)}},
        epoch{},
        [done = std::move(done)](const result<publish_outcome>& outcome) {
            if (!outcome) return done(tl::unexpected(outcome.error()));
            if (!outcome->failures.empty()) return done(tl::unexpected(outcome->failures.front().why));
            done({});
        }
    );
}

}  // namespace millrace
