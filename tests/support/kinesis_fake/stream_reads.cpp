#include "record/bytes_text.hpp"
#include "support/kinesis_fake/sequence.hpp"
#include "support/kinesis_fake/stream_model.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace millrace::kinesis_fake {

namespace {

tl::unexpected<refusal> refuse(std::string type, std::string message) {
    return tl::unexpected(refusal{std::move(type), std::move(message)});
}

std::int64_t count(wall_time when) {
    return when.time_since_epoch().count();
}

std::string utc(wall_time when) {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(when);
    return fmt::format(
        "{:%a %b %d %H:%M:%S UTC %Y}", fmt::gmtime(std::chrono::system_clock::to_time_t(seconds))
    );
}

/// What iterators and tokens are made of, hidden from the client by base64.
struct ticket {
    std::string kind;  ///< "iterator" or "token"
    std::string stream;
    std::int64_t created{0};  ///< Of the stream, so that one of the same name is another.
    std::uint32_t shard{0};
    std::uint64_t index{0};
    std::int64_t issued{0};
};

std::string seal(const ticket& what, std::uint64_t serial) {
    return to_base64(fmt::format(
        "{}|{}|{}|{}|{}|{}|{}",
        what.kind,
        what.stream,
        what.created,
        what.shard,
        what.index,
        what.issued,
        serial
    ));
}

std::optional<ticket> unseal(std::string_view kind, const std::string& text) {
    const auto plain = from_base64(text);
    if (!plain) return std::nullopt;
    std::vector<std::string_view> parts;
    std::string_view rest = *plain;
    for (std::size_t bar = 0; (bar = rest.find('|')) != std::string_view::npos; rest.remove_prefix(bar + 1))
        parts.push_back(rest.substr(0, bar));
    if (parts.size() != 6 || parts[0] != kind) return std::nullopt;
    ticket made{std::string(parts[0]), std::string(parts[1])};
    const auto read = [](std::string_view from, auto& to) {
        return std::from_chars(from.data(), from.data() + from.size(), to).ec == std::errc{};
    };
    const bool whole = read(parts[2], made.created) && read(parts[3], made.shard) &&
                       read(parts[4], made.index) && read(parts[5], made.issued);
    if (!whole) return std::nullopt;
    return made;
}

}  // namespace

shard_page stream_model::page(const stored_stream& of, std::uint32_t from, std::size_t page_max) {
    shard_page made;
    const auto most = std::min(page_max == 0 ? limits.page_shards : page_max, limits.page_shards);
    for (const auto& shard : of.shards) {
        if (shard.number < from || !shard.listed) continue;
        if (made.shards.size() == most) {
            made.token =
                seal({"token", of.name, count(of.created), shard.number, 0, count(now_())}, ++serial_);
            break;
        }
        made.shards.push_back(&shard);
    }
    return made;
}

answer<shard_page> stream_model::list(const std::string& stream, std::size_t page_max) {
    const auto in = stream_named(stream);
    if (!in) return tl::unexpected(in.error());
    return page(**in, 0, page_max);
}

answer<shard_page> stream_model::list_on(const std::string& token, std::size_t page_max) {
    const auto parts = unseal("token", token);
    if (!parts) return refuse("InvalidArgumentException", "NextToken is invalid.");
    if (count(now_()) - parts->issued > limits.token_life.count())
        return refuse("ExpiredNextTokenException", "The NextToken that was given has expired.");
    const auto in = stream_named(parts->stream);
    if (!in) return tl::unexpected(in.error());
    if (count((*in)->created) != parts->created)
        return refuse("InvalidArgumentException", "NextToken is of an older stream of this name.");
    return page(**in, parts->shard, page_max);
}

answer<std::string> stream_model::iterator(
    const std::string& stream, const std::string& shard, const iterator_place& where
) {
    const auto in = stream_named(stream);
    if (!in) return tl::unexpected(in.error());
    const auto of = shard_named(**in, shard);
    if (!of) return tl::unexpected(of.error());
    if (!(*of)->iterators.allows(limits.iterators, now_())) {
        return refuse(
            "ProvisionedThroughputExceededException",
            fmt::format("Rate exceeded for shard {} in stream {} under account {}.", shard, stream, account)
        );
    }
    (*of)->iterators.serve(limits.iterators, now_(), 0);
    const auto index = index_of(**in, **of, where);
    if (!index) return tl::unexpected(index.error());
    return make_iterator(**in, **of, *index);
}

answer<std::uint64_t> stream_model::index_of(
    const stored_stream& in, const stored_shard& shard, const iterator_place& where
) const {
    const bool by_sequence = where.type == "AT_SEQUENCE_NUMBER" || where.type == "AFTER_SEQUENCE_NUMBER";
    const bool by_time = where.type == "AT_TIMESTAMP";
    if (by_sequence != where.sequence.has_value() || by_time != where.timestamp.has_value()) {
        return refuse(
            "InvalidArgumentException",
            fmt::format(
                "Must either specify (1) AT_SEQUENCE_NUMBER or AFTER_SEQUENCE_NUMBER and "
                "StartingSequenceNumber or "
                "(2) TRIM_HORIZON or LATEST and no StartingSequenceNumber. Request specified {}.",
                where.type
            )
        );
    }
    if (by_sequence) return index_of_sequence(in, shard, where);
    if (where.type == "TRIM_HORIZON") return shard.trimmed;
    if (where.type == "LATEST") return shard.end();
    if (!by_time) return refuse("ValidationException", "ShardIteratorType is unknown: " + where.type);
    if (*where.timestamp > now_()) {
        return refuse(
            "InvalidArgumentException",
            fmt::format(
                "The timestampInMillis parameter cannot be greater than the currentTimestampInMillis. "
                "timestampInMillis: {}, currentTimestampInMillis: {}",
                count(*where.timestamp),
                count(now_())
            )
        );
    }
    const auto first = std::ranges::find_if(shard.records, [&](const stored_record& r) {
        return r.arrived >= *where.timestamp;
    });
    return shard.trimmed + static_cast<std::uint64_t>(first - shard.records.begin());
}

answer<std::uint64_t> stream_model::index_of_sequence(
    const stored_stream& in, const stored_shard& shard, const iterator_place& where
) {
    const auto parts = from_sequence(*where.sequence);
    const auto invalid = [&](std::string_view why) {
        return refuse(
            "InvalidArgumentException",
            fmt::format(
                "StartingSequenceNumber {} used in GetShardIterator on shard {} in stream {} under account "
                "{} is "
                "invalid{}.",
                *where.sequence,
                shard.id,
                in.name,
                account,
                why
            )
        );
    };
    if (!parts) return invalid("");
    if (parts->shard != shard.number) {
        return refuse(
            "InvalidArgumentException",
            fmt::format(
                "Invalid StartingSequenceNumber. It encodes {}, while it was used in a call to {}",
                shard_name(parts->shard),
                shard.id
            )
        );
    }
    if (parts->shard_born != shard.born) return invalid(" because it did not come from this stream");
    const bool after = where.type == "AFTER_SEQUENCE_NUMBER";
    if (after && parts->index == sequence_index_max) {
        return refuse(
            "InvalidArgumentException",
            "Invalid SequenceNumber for ShardIteratorType AFTER_SEQUENCE_NUMBER, SequenceNumber has reached "
            "max "
            "possible value for the shard"
        );
    }
    if (parts->index >= in.next_index && parts->index != sequence_index_max) return invalid("");
    const auto first = std::ranges::find_if(shard.records, [&](const stored_record& r) {
        return after ? r.index > parts->index : r.index >= parts->index;
    });
    return shard.trimmed + static_cast<std::uint64_t>(first - shard.records.begin());
}

std::string stream_model::make_iterator(
    const stored_stream& in, const stored_shard& shard, std::uint64_t index
) {
    return seal({"iterator", in.name, count(in.created), shard.number, index, count(now_())}, ++serial_);
}

std::optional<std::string> stream_model::shard_of_iterator(const std::string& iterator) const {
    const auto parts = unseal("iterator", iterator);
    if (!parts) return std::nullopt;
    return shard_name(parts->shard);
}

std::vector<const stored_shard*> stream_model::children_of(
    const stored_stream& in, const stored_shard& shard
) {
    std::vector<const stored_shard*> children;
    for (const auto& other : in.shards) {
        if (other.parent == shard.number || other.other_parent == shard.number) children.push_back(&other);
    }
    return children;
}

answer<read_page> stream_model::read(
    const std::string& iterator, std::size_t records_max, const read_quirks& quirks
) {
    const auto parts = unseal("iterator", iterator);
    if (!parts) return refuse("InvalidArgumentException", "Invalid ShardIterator.");
    const auto now = now_();
    if (count(now) - parts->issued > limits.iterator_life.count()) {
        return refuse(
            "ExpiredIteratorException",
            fmt::format(
                "Iterator expired. The iterator was created at time {} while right now it is {} which is "
                "further in "
                "the future than the tolerated delay of {} milliseconds.",
                utc(wall_time{milliseconds{parts->issued}}),
                utc(now),
                limits.iterator_life.count()
            )
        );
    }
    const auto in = stream_named(parts->stream);
    if (!in) return tl::unexpected(in.error());
    if (count((*in)->created) != parts->created)
        return refuse("InvalidArgumentException", "Invalid ShardIterator.");
    const auto of = shard_named(**in, shard_name(parts->shard));
    if (!of) return tl::unexpected(of.error());
    auto& shard = **of;
    if (!shard.reads.allows(limits.reads, now)) {
        return refuse(
            "ProvisionedThroughputExceededException",
            fmt::format(
                "Rate exceeded for shard {} in stream {} under account {}.", shard.id, parts->stream, account
            )
        );
    }
    read_page made;
    made.shard = &shard;
    auto at = std::max(parts->index, shard.trimmed);
    const auto readable = [&](std::uint64_t index) {
        return index < shard.end() && shard.records[index - shard.trimmed].visible <= now;
    };
    const auto most = quirks.empty      ? 0
                      : quirks.one_only ? std::min<std::size_t>(1, records_max)
                                        : records_max;
    std::uint64_t bytes = 0;
    for (; made.records.size() < most && readable(at); ++at) {
        const auto& record = shard.records[at - shard.trimmed];
        const auto size = record.key.size() + record.data.size();
        if (!made.records.empty() && bytes + size > limits.reply_bytes_max) break;
        bytes += size;
        made.records.push_back(&record);
    }
    shard.reads.serve(limits.reads, now, bytes);
    if (readable(at)) {
        const auto& last = made.records.empty() ? shard.records[at - shard.trimmed] : *made.records.back();
        made.behind = std::max<milliseconds>(1ms, now - last.arrived);
    }
    const bool ended = shard.closed && at == shard.end() && (limits.end_with_records || made.records.empty());
    if (!ended) {
        made.next = make_iterator(**in, shard, at);
    } else if (!quirks.childless) {
        made.children = children_of(**in, shard);
    }
    return made;
}

}  // namespace millrace::kinesis_fake
