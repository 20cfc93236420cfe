#include "record/kpl.hpp"
#include "record/md5.hpp"
#include "targets.hpp"

#include <string>

namespace millrace::fuzz {

namespace {

bool within(std::string_view part, std::string_view whole) {
    return part.empty() ||
           (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

void open(std::string_view bytes) {
    record_batch batch{shard_id{"s"}};
    record outer{};
    outer.position = {sequence_number{7}, 0};
    outer.data = batch.store(bytes);
    const auto kept_bytes = batch.bytes();
    kpl_opener opener;
    opener.add(batch, outer, {});
    const auto records = batch.records();
    if (opener.totals().aggregates == 0) {
        require(
            records.size() == 1 && *records[0].data == bytes, "what is no aggregate is delivered as it is"
        );
    } else {
        require(records.size() == opener.totals().sub_records, "without a filter all are delivered");
    }
    for (std::size_t i = 0; i < records.size(); ++i) {
        require(within(*records[i].data, *outer.data), "data are views into the outer record");
        require(records[i].position.sub_sequence == i, "places are counted from 0");
    }
    require(batch.bytes() - records.size() * sizeof(record) == kept_bytes, "nothing is copied");
}

}  // namespace

void kpl(std::string_view bytes) {
    open(bytes);
    // So that the fuzzer need not find digests.
    const auto digest = md5(bytes);
    open("\xF3\x89\x9A\xC2" + std::string(bytes) + std::string(digest.begin(), digest.end()));
}

}  // namespace millrace::fuzz
