#include "group/probe_group.hpp"

#include "group/page.hpp"
#include "support/kinesis_fake/wire.hpp"

#include <cstring>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <vector>

#include <curl/curl.h>

namespace millrace::bench {

namespace {

/// Just enough of CBOR: it walks over what the service sends and does not check it.
class reader {
public:
    explicit reader(std::string_view in) : at_(in.data()) {}

    struct item {
        unsigned kind;
        std::uint64_t size;
        bool open;
    };
    item head() {
        const auto first = static_cast<unsigned char>(*at_++);
        const unsigned low = first & 0x1fU;
        item made{static_cast<unsigned>(first) >> 5U, low, low == 31};
        if (low < 24 || made.open) return made;
        made.size = 0;
        for (unsigned i = 0; i < 1U << (low - 24U); ++i)
            made.size = (made.size << 8U) | static_cast<unsigned char>(*at_++);
        return made;
    }
    std::string_view text(const item& of) {
        const std::string_view made(at_, of.size);
        at_ += of.size;
        return made;
    }
    bool at_end() {
        if (*at_ != '\xff') return false;
        ++at_;
        return true;
    }
    /// A string or a number, tagged or not.
    std::string_view plain(std::uint64_t& number) {
        auto of = head();
        if (of.kind == 6) of = head();
        number = of.size;
        return of.kind == 2 || of.kind == 3 ? text(of) : std::string_view{};
    }

private:
    const char* at_;
};

struct page_read {
    std::uint64_t records{0};
    std::string next;
    std::uint64_t behind{0};
};

page_read read_page(std::string_view body, std::vector<char>& copy) {
    page_read made;
    reader in(body);
    in.head();
    std::uint64_t number = 0;
    while (!in.at_end()) {
        const auto name = in.text(in.head());
        if (name == "NextShardIterator") {
            made.next = in.plain(number);
        } else if (name == "MillisBehindLatest") {
            in.plain(made.behind);
        } else {  // Records
            in.head();
            copy.clear();
            while (!in.at_end()) {
                in.head();
                while (!in.at_end()) {
                    const auto field = in.text(in.head());
                    const auto bytes = in.plain(number);
                    if (field == "Data") copy.insert(copy.end(), bytes.begin(), bytes.end());
                }
                ++made.records;
            }
        }
    }
    return made;
}

std::size_t take(char* data, std::size_t size, std::size_t count, void* to) {
    static_cast<std::string*>(to)->append(data, size * count);
    return size * count;
}

}  // namespace

std::uint64_t probe_kinesis(const std::string& endpoint, std::uint32_t shards) {
    const std::unique_ptr<CURL, void (*)(CURL*)> curl(curl_easy_init(), curl_easy_cleanup);
    curl_slist* list = curl_slist_append(nullptr, "Content-Type: application/x-amz-cbor-1.1");
    list = curl_slist_append(list, "X-Amz-Target: Kinesis_20131202.GetRecords");
    const std::unique_ptr<curl_slist, void (*)(curl_slist*)> headers(list, curl_slist_free_all);
    std::string reply;
    curl_easy_setopt(curl.get(), CURLOPT_URL, endpoint.c_str());
    curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, headers.get());
    curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &reply);
    curl_easy_setopt(curl.get(), CURLOPT_BUFFERSIZE, 512L * 1024);

    std::vector<std::string> next;
    for (std::uint32_t shard = 0; shard < shards; ++shard)
        next.push_back(to_iterator({shard, 0}));
    std::uint64_t records = 0;
    std::vector<char> copy;
    for (std::size_t left = shards; left > 0;) {
        for (auto& iterator : next) {
            if (iterator.empty()) continue;
            using namespace kinesis_fake;
            const auto body = encode(
                wire_form::cbor,
                value{value_map{{"ShardIterator", value{iterator}}, {"Limit", value{std::int64_t{10'000}}}}}
            );
            curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDS, body.data());
            curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDSIZE, static_cast<long>(body.size()));
            reply.clear();
            if (const auto failed = curl_easy_perform(curl.get()); failed != CURLE_OK)
                throw std::runtime_error(curl_easy_strerror(failed));
            auto read = read_page(reply, copy);
            records += read.records;
            iterator = read.behind == 0 ? "" : std::move(read.next);
            if (iterator.empty()) --left;
        }
    }
    return records;
}

}  // namespace millrace::bench
