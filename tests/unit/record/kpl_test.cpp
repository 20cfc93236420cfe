#include "record/kpl.hpp"

#include "record/bytes_text.hpp"
#include "record/md5.hpp"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace millrace {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// Made by the KPL itself; kept by awslabs/kinesis-aggregation (Apache-2.0), python/test/test_deagg.py.
constexpr std::string_view with_hash_keys =
    "84mawgokZmMwM2RkODgtM2U3OS00NDhhLWIwMWEtN2NmMWJkNDdiNzg0CiRjYWU0MWIxYy1lYTYxLTQzZjItOTBiZS1iODc1NWViZj"
    "g4ZTIKJGQ0OTA2OTBjLWU3NGQtNGRiMi1hM2M4LWQ4ZjJmMTg0ZmQyMwokYzkyNGJjMDktYjg1ZS00N2YxLWIzMmUtMzM2NTIyZWU1"
    "M2M4EiYzODQ4NjQ5NTg2NzUwODM5OTA3ODE1OTcyMzg0NjA1MTgwNzAyMBInMTkzNzg3NjAwMDM3NjgxNzA2OTUyMTQzMzU3MDcxOT"
    "E2MzUyNjA0EicyNjY4ODA0MzY5NjQ5MzI0MjQyNjU0NjY5MTY3MzQwNjg2ODQ0MzkSJzMzOTYwNjYwMDk0Mjk2NzM5MTg1NDYwMzU1"
    "MjQwMjAyMTg0NzI5MhomCAAQABogUkVDT1JEIDIyIHBlZW9iaGN6YnpkbXNrYm91cGd5cQoaJggBEAEaIFJFQ09SRCAyMyB1c3dreG"
    "Z0eHJvZXVzc2N4c2pobm8KGiYIAhACGiBSRUNPUkQgMjQgY2FzZWhkZ2l2ZmF4ZXVzdGx5c3p5ChomCAMQAxogUkVDT1JEIDI1IG52"
    "ZmZ2cG11b2dkb3BqaGFtZXZyawpRwVPQ3go0yp4Y6kvM0q3V";
constexpr std::string_view without_hash_keys =
    "84mawgokNzhmZWIxMmEtZGJhMC00NWNhLWE5MWUtYmIxZjJmMTgxOWI0CiRjMmE3NTc4Ny00NjliLTQzMTAtODQwZC1kNDg2ZGNhN2"
    "ViNWUKJDY1MGU5MzYyLTU3MmItNDQyNy1iM2ZjLTEzNTQ5ZDdlNWFlNQokMWQ4ZDk2MDAtMDBiNy00NmYzLWE5ODMtZGU4MzQ3NzU0"
    "MGMwCiRmMmU3MThhMC0zODliLTQ5NGEtYjc5Ni0zMzU1YjA3NTY5Y2MKJDk2NWI4ZGE0LWE2YmQtNDc1NS04MWM5LWU3MTgxYWI3ZG"
    "M5YQokZDY5M2M1ZjAtNTc3Mi00NmM5LThkODYtMDhjNzA1NWJkYjc1CiQ4ZDkyNDc2Yi1lYjg5LTRlODEtOTlmYi1jMmJhNjNhZDZk"
    "OTAaJAgAGiBSRUNPUkQgMTggaWtscnBzdnloeG5lcm9kZmVoZXJ1ChokCAEaIFJFQ09SRCAxOSBsbm1udWR5aHZwdmNncm9rZm16ZG"
    "gKGiQIAhogUkVDT1JEIDIwIHBqcXJjZmJ4YWZ6ZG5kem1iZ2FuZQoaJAgDGiBSRUNPUkQgMjEgYWFmcmV5cm50d3V3eGxpeWdrYmhr"
    "ChokCAQaIFJFQ09SRCAyMiBxc2FhZGhic2dtdnFnZGlmZ3V5b3UKGiQIBRogUkVDT1JEIDIzIHdqb2tvaXd2enpobGZ0bHpocWZqaw"
    "oaJAgGGiBSRUNPUkQgMjQgem9wY2FzY3J0aGJicG5qaXd1aGpiChokCAcaIFJFQ09SRCAyNSB0eGJidm5venJ3c2JveHVvbXFib3EK"
    "vV1rrLdU+Sy2v8xkgZ5YaA==";
// Keys a and b, data x and yz.
constexpr std::string_view smallest = "84mawgoBYQoBYhoFCAAaAXgaBggBGgJ5em/hvBQHqrxB4+DIjz9mi68=";

using text_pair = std::pair<std::string, std::string>;

struct opened {
    record_batch batch{shard_id{"shardId-000000000000"}};
    kpl_opener opener;

    explicit opened(const std::string& data, const kpl_opener::filter& wanted = {}) { add(7, data, wanted); }
    void add(std::uint64_t sequence, const std::string& data, const kpl_opener::filter& wanted) {
        record outer{};
        outer.position = {sequence_number{sequence}, 0};
        outer.key = batch.store("outer");
        outer.data = batch.store(data);
        outer.arrival = wall_time{milliseconds{1'700'000'000'000}};
        opener.add(batch, outer, wanted);
    }
    [[nodiscard]] std::vector<text_pair> texts() const {
        std::vector<text_pair> all;
        for (const auto& r : batch.records())
            all.emplace_back(*r.key, *r.data);
        return all;
    }
    [[nodiscard]] std::vector<std::uint64_t> places() const {
        std::vector<std::uint64_t> all;
        for (const auto& r : batch.records())
            all.push_back(r.position.sub_sequence);
        return all;
    }
};

std::string bytes(std::string_view base64) {
    return from_base64(base64).value();
}

std::string varint(std::uint64_t value) {
    std::string out;
    for (; value >= 0x80; value >>= 7U)
        out.push_back(static_cast<char>(value | 0x80U));
    out.push_back(static_cast<char>(value));
    return out;
}
std::string number(unsigned field, std::uint64_t value) {
    return varint(field * 8U) + varint(value);
}
std::string text(unsigned field, const std::string& content) {
    return varint(field * 8U + 2) + varint(content.size()) + content;
}
std::string aggregate(const std::string& message) {
    const auto digest = md5(message);
    return "\xF3\x89\x9A\xC2" + message + std::string(digest.begin(), digest.end());
}

TEST(Md5, MatchesTheVectorsOfItsRfcAtEveryLengthOfTheTail) {
    const auto hex = [](std::string_view of) {
        std::string out;
        for (const auto byte : md5(of))
            for (const auto nibble : {byte / 16, byte % 16})
                out.push_back("0123456789abcdef"[static_cast<std::size_t>(nibble)]);
        return out;
    };
    EXPECT_EQ(hex(""), "d41d8cd98f00b204e9800998ecf8427e");
    EXPECT_EQ(hex("abc"), "900150983cd24fb0d6963f7d28e17f72");
    EXPECT_EQ(hex("abcdefghijklmnopqrstuvwxyz"), "c3fcd3d76192e4007dfb496cca67e13b");
    EXPECT_EQ(
        hex("12345678901234567890123456789012345678901234567890123456789012345678901234567890"),
        "57edf4a22be3c955ac49da2e2107b67a"
    );
    EXPECT_EQ(hex(std::string(55, 'a')), "ef1772b6dff9a122358552954ad0df65");
    EXPECT_EQ(hex(std::string(56, 'a')), "3b0c8ac703f828b04c6c197006d17218");
    EXPECT_EQ(hex(std::string(64, 'a')), "014842d480b571495a4a0363793f7367");
    EXPECT_EQ(hash_of("abc").to_string(), "191415658344158766168031473277922803570");
}

TEST(Kpl, OpensWhatTheProducerLibraryWrote) {
    const opened some(bytes(with_hash_keys));
    ASSERT_THAT(some.texts(), SizeIs(4));
    EXPECT_EQ(
        some.texts()[0],
        text_pair("fc03dd88-3e79-448a-b01a-7cf1bd47b784", "RECORD 22 peeobhczbzdmskboupgyq\n")
    );
    EXPECT_EQ(
        some.texts()[3],
        text_pair("c924bc09-b85e-47f1-b32e-336522ee53c8", "RECORD 25 nvffvpmuogdopjhamevrk\n")
    );
    EXPECT_THAT(some.places(), ElementsAre(0, 1, 2, 3));
    const auto& last = some.batch.records()[3];
    EXPECT_EQ(last.position.sequence, sequence_number{7});
    EXPECT_EQ(last.arrival, wall_time{milliseconds{1'700'000'000'000}});

    const opened others(bytes(without_hash_keys));
    ASSERT_THAT(others.texts(), SizeIs(8));
    EXPECT_EQ(
        others.texts()[7],
        text_pair("8d92476b-eb89-4e81-99fb-c2ba63ad6d90", "RECORD 25 txbbvnozrwsboxuomqboq\n")
    );
    EXPECT_THAT(opened(bytes(smallest)).texts(), ElementsAre(text_pair("a", "x"), text_pair("b", "yz")));
}

TEST(Kpl, SubRecordsAreViewsIntoTheOuterData) {
    const opened some(bytes(smallest));
    const auto before = std::string_view(bytes(smallest)).size();
    EXPECT_EQ(some.batch.bytes(), before + 5 + 2 * sizeof(record)) << "nothing was copied";
}

TEST(Kpl, DeliversAsItIsWhateverIsNoAggregateInEveryDetail) {
    const auto good = bytes(smallest);
    const auto key = text(1, "k");
    const auto sub = [](const std::string& fields) { return text(3, fields); };
    const std::vector<std::pair<const char*, std::string>> cases{
        {"empty", ""},
        {"plain", "RECORD 749 pjqrcfbxafzdndzmbgane"},
        {"the magic alone", good.substr(0, 4)},
        {"nothing between magic and digest", aggregate("")},
        {"another magic", "\xF3\x89\x9A\xC3" + good.substr(4)},
        {"a wrong digest", good.substr(0, good.size() - 1) + "!"},
        {"a byte too many", good + "x"},
        {"cut", good.substr(0, good.size() - 5)},
        {"no protobuf", aggregate("\xff\xff\xff")},
        {"field number 0", aggregate(std::string("\0\0", 2))},
        {"a group", aggregate(key + "\x2b")},
        {"a number in place of a key", aggregate(number(1, 5))},
        {"a length beyond the end",
         aggregate("\x0a\x7f"
                   "a")},
        {"a varint without an end", aggregate(key + sub("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))},
        {"no key index", aggregate(key + sub(text(3, "d")))},
        {"no data", aggregate(key + sub(number(1, 0)))},
        {"a key index out of range", aggregate(key + sub(number(1, 1) + text(3, "d")))},
        {"a hash index out of range", aggregate(key + sub(number(1, 0) + number(2, 0) + text(3, "d")))},
        {"a hash that is no number", aggregate(key + text(2, "x") + sub(number(1, 0) + text(3, "d")))},
        {"a hash beyond the ring",
         aggregate(key + text(2, std::string(40, '9')) + sub(number(1, 0) + text(3, "d")))},
        {"a tag without a key", aggregate(key + sub(number(1, 0) + text(3, "d") + text(4, "")))},
        {"one bad sub-record behind a good one",
         aggregate(key + sub(number(1, 0) + text(3, "d")) + sub(number(1, 9) + text(3, "e")))}};
    for (const auto& [what, data] : cases) {
        const opened as_it_is(data);
        EXPECT_THAT(as_it_is.texts(), ElementsAre(text_pair("outer", data))) << what;
        EXPECT_EQ(as_it_is.opener.totals().aggregates, 0U) << what;
    }
}

TEST(Kpl, SkipsUnknownFieldsAndTakesFieldsInAnyOrder) {
    const auto sub =
        text(3, text(3, "d") + text(4, text(1, "tag") + text(2, "v")) + number(9, 4) + number(1, 0));
    const auto unknown = number(15, 300) + text(16, "?") +
                         "\x7d"
                         "1234" +
                         "\x81\x01"
                         "12345678";
    EXPECT_THAT(opened(aggregate(sub + unknown + text(1, "k"))).texts(), ElementsAre(text_pair("k", "d")));
}

TEST(Kpl, AnAggregateOfNothingDeliversNothing) {
    const opened none(aggregate(text(1, "k")));
    EXPECT_THAT(none.texts(), IsEmpty());
    EXPECT_EQ(none.opener.totals().aggregates, 1U);
}

TEST(Kpl, KeepsEachSubRecordOfTheShardsRangeAndCountsTheOthers) {
    const auto a = hash_of("a");
    const opened only_a(bytes(smallest), {.range = hash_range{a, a}});
    EXPECT_THAT(only_a.texts(), ElementsAre(text_pair("a", "x")));
    EXPECT_EQ(only_a.opener.totals().sub_records, 2U);
    EXPECT_EQ(only_a.opener.totals().foreign, 1U);

    const opened only_b(bytes(smallest), {.range = hash_range{hash_of("b"), hash_of("b")}});
    EXPECT_THAT(only_b.places(), ElementsAre(1)) << "the place in the aggregate stays";
}

TEST(Kpl, AnExplicitHashKeyCountsAlsoWhenItIsTheFirstOfTheTable) {
    const auto data = aggregate(
        text(1, "k") + text(2, "5") + text(3, number(1, 0) + number(2, 0) + text(3, "given")) +
        text(3, number(1, 0) + text(3, "by key"))
    );
    EXPECT_THAT(
        opened(data, {.range = hash_range{{0, 5}, {0, 5}}}).texts(), ElementsAre(text_pair("k", "given"))
    );
    const auto k = hash_of("k");
    EXPECT_THAT(opened(data, {.range = hash_range{k, k}}).texts(), ElementsAre(text_pair("k", "by key")));
}

TEST(Kpl, GoesOnBehindASubRecordAndBehindARecord) {
    const auto behind = [](std::uint64_t sequence, std::uint64_t sub) {
        return kpl_opener::filter{.range = {}, .after = position{sequence_number{sequence}, sub}};
    };
    EXPECT_THAT(opened(bytes(without_hash_keys), behind(7, 5)).places(), ElementsAre(6, 7));
    EXPECT_THAT(opened(bytes(without_hash_keys), behind(7, 7)).places(), IsEmpty());
    EXPECT_THAT(opened(bytes(without_hash_keys), behind(6, 9)).places(), SizeIs(8));
    EXPECT_THAT(opened("plain", behind(7, 0)).places(), IsEmpty());
    EXPECT_THAT(opened("plain", behind(6, 0)).places(), SizeIs(1));
}

RC_GTEST_PROP(Kpl, OpensWhatAProducerPutsIn, ()) {
    const auto pairs = *rc::gen::container<std::vector<std::pair<std::string, std::string>>>(
        rc::gen::pair(rc::gen::arbitrary<std::string>(), rc::gen::arbitrary<std::string>())
    );
    RC_PRE(!pairs.empty());
    std::string message;
    for (std::size_t i = 0; i < pairs.size(); ++i)
        message += text(1, pairs[i].first) + text(3, number(1, i) + text(3, pairs[i].second));
    RC_ASSERT(opened(aggregate(message)).texts() == pairs);
}

}  // namespace
}  // namespace millrace
