#include "support/delivery_check.hpp"

#include <charconv>
#include <optional>

#include <boost/json.hpp>

namespace millrace::support {

namespace {

namespace json = boost::json;

std::string text(const json::object& line, std::string_view field) {
    const auto* value = line.if_contains(field);
    if (value == nullptr) return {};
    return value->is_string() ? std::string(value->get_string()) : json::serialize(*value);
}

std::optional<std::uint64_t> number_in_header(const json::object& line) {
    const auto* headers = line.if_contains("headers");
    if (headers == nullptr || !headers->is_array()) return std::nullopt;
    for (const auto& header : headers->get_array()) {
        const auto* pair = header.if_array();
        if (pair == nullptr || pair->size() != 2 || !(*pair)[0].is_string() || !(*pair)[1].is_string())
            continue;
        if (std::string_view((*pair)[0].get_string()) != event_number_header) continue;
        const std::string_view digits = (*pair)[1].get_string();
        std::uint64_t number = 0;
        const auto [end, bad] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
        if (bad == std::errc{} && end == digits.data() + digits.size()) return number;
    }
    return std::nullopt;
}

std::optional<std::uint64_t> number_in_value(const json::object& line) {
    boost::system::error_code bad;
    const auto value = json::parse(text(line, "data"), bad);
    if (bad || !value.is_object()) return std::nullopt;
    const auto* number = value.get_object().if_contains("order");
    if (number == nullptr || !number->is_int64()) return std::nullopt;
    return static_cast<std::uint64_t>(number->get_int64());
}

std::optional<std::uint64_t> number_of(const json::object& line) {
    const auto number = number_in_header(line);
    return number ? number : number_in_value(line);
}

}  // namespace

std::uint64_t delivery_check::delivered(std::string_view line) {
    boost::system::error_code bad;
    const auto parsed = json::parse(line, bad);
    if (bad || !parsed.is_object()) {
        ++counts_.broken_lines;
        return 0;
    }
    const auto& record = parsed.get_object();
    const auto number = number_of(record);
    if (!number) {
        ++counts_.unknown;
        return 0;
    }
    ++counts_.by_worker[text(record, "worker")];

    const auto stream = text(record, "stream");
    const bool new_record =
        records_.insert(stream + '/' + text(record, "sequence") + '.' + text(record, "sub_sequence")).second;
    if (!new_record) {
        ++counts_.handed_twice;
        if (delivered_.contains(*number)) return 0;
    }
    const auto key = text(record, "key");
    const auto key_base64 = text(record, "key_base64");
    std::optional<std::string> lane;
    if (!key.empty() || record.contains("key_base64")) lane = stream + '/' + key + '/' + key_base64;
    return delivered(*number, lane) ? *number : 0;
}

bool delivery_check::delivered(std::uint64_t number, const std::optional<std::string>& key) {
    if (!delivered_.insert(number).second) {
        ++counts_.published_twice;
        return false;
    }
    if (!key) return true;
    auto& newest = newest_of_key_[*key];
    if (number < newest) ++counts_.out_of_order;
    newest = std::max(newest, number);
    return true;
}

std::vector<std::uint64_t> delivery_check::missing(std::size_t limit) const {
    std::vector<std::uint64_t> result;
    for (const auto number : written_) {
        if (result.size() == limit) break;
        if (!delivered_.contains(number)) result.push_back(number);
    }
    return result;
}

delivery_report delivery_check::report() const {
    auto result = counts_;
    result.written = written_.size();
    for (const auto number : written_)
        result.lost += delivered_.contains(number) ? 0U : 1U;
    result.delivered = written_.size() - result.lost;
    for (const auto number : delivered_)
        result.unknown += written_.contains(number) ? 0U : 1U;
    return result;
}

}  // namespace millrace::support
