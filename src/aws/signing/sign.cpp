#include "signing/sign.hpp"

#include "assert.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

namespace millrace::aws {

namespace {

using namespace std::string_view_literals;

using digest = std::array<unsigned char, 32>;

std::string_view bytes_of(const digest& value) {
    return {reinterpret_cast<const char*>(value.data()), value.size()};
}

digest sha256(std::string_view text) {
    digest out{};
    MILLRACE_ASSERT(EVP_Digest(text.data(), text.size(), out.data(), nullptr, EVP_sha256(), nullptr) == 1);
    return out;
}

digest hmac(std::string_view key, std::string_view text) {
    digest out{};
    const auto* const made = HMAC(
        EVP_sha256(),
        key.data(),
        static_cast<int>(key.size()),
        reinterpret_cast<const unsigned char*>(text.data()),
        text.size(),
        out.data(),
        nullptr
    );
    MILLRACE_ASSERT(made != nullptr);
    return out;
}

std::string hex(const digest& value) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string out;
    out.reserve(2 * value.size());
    for (const auto byte : value) {
        out += digits[byte >> 4U];
        out += digits[byte & 15U];
    }
    return out;
}

bool is_unreserved(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

void append_encoded(std::string& out, std::string_view text) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    for (const char c : text) {
        if (is_unreserved(c)) {
            out += c;
            continue;
        }
        const auto byte = static_cast<unsigned char>(c);
        out += '%';
        out += digits[byte >> 4U];
        out += digits[byte & 15U];
    }
}

int value_of_hex(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

std::string decoded(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const int high = text[i] == '%' && i + 2 < text.size() ? value_of_hex(text[i + 1]) : -1;
        const int low = high >= 0 ? value_of_hex(text[i + 2]) : -1;
        out += low >= 0 ? static_cast<char>(high * 16 + low) : text[i];
        if (low >= 0) i += 2;
    }
    return out;
}

/// Calls `part` with each piece between separators, empty ones too.
template <class F>
void split(std::string_view text, char separator, F part) {
    for (;;) {
        const auto end = text.find(separator);
        part(text.substr(0, end));
        if (end == std::string_view::npos) return;
        text.remove_prefix(end + 1);
    }
}

void append_path(std::string& out, std::string_view path) {
    std::vector<std::string_view> kept;
    bool ends_open = true;  // with a slash
    split(path, '/', [&](std::string_view segment) {
        ends_open = segment.empty() || segment == "." || segment == "..";
        if (segment == ".." && !kept.empty()) kept.pop_back();
        if (!ends_open) kept.push_back(segment);
    });
    for (const auto segment : kept) {
        out += '/';
        append_encoded(out, segment);
    }
    if (ends_open || kept.empty()) out += '/';
}

void append_query(std::string& out, std::string_view query) {
    if (query.empty()) return;
    std::vector<std::pair<std::string, std::string>> pairs;
    split(query, '&', [&](std::string_view pair) {
        if (pair.empty()) return;
        const auto equals = std::min(pair.find('='), pair.size());
        auto& [name, value] = pairs.emplace_back();
        append_encoded(name, decoded(pair.substr(0, equals)));
        if (equals < pair.size()) append_encoded(value, decoded(pair.substr(equals + 1)));
    });
    std::sort(pairs.begin(), pairs.end());
    for (const auto& [name, value] : pairs) {
        if (&name != &pairs.front().first) out += '&';
        out.append(name).append("=").append(value);
    }
}

/// Without spaces around it, and one where there were several.
void append_folded(std::string& out, std::string_view value) {
    bool space = false;
    const auto begin = out.size();
    for (const char c : value) {
        if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
            space = true;
            continue;
        }
        if (space && out.size() > begin) out += ' ';
        space = false;
        out += c;
    }
}

/// Names in lower case, sorted; values of the same name stay in their order.
header_list canonical_headers(std::span<const std::pair<std::string, std::string>> headers) {
    header_list out;
    out.reserve(headers.size());
    for (const auto& [name, value] : headers) {
        auto& line = out.emplace_back(name, std::string());
        for (char& c : line.first)
            if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
        append_folded(line.second, value);
    }
    std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    return out;
}

std::string names_of(const header_list& sorted) {
    std::string out;
    std::string_view last;
    for (const auto& [name, value] : sorted) {
        if (name == last) continue;
        if (!out.empty()) out += ';';
        out += last = name;
    }
    return out;
}

std::string canonical(const signable& what, const header_list& sorted, std::string_view names) {
    std::string out;
    out.reserve(1024);
    out.append(what.method).append("\n");
    append_path(out, what.path);
    out += '\n';
    append_query(out, what.query);
    std::string_view last;
    for (const auto& [name, value] : sorted) {
        if (name == last) {
            out.append(",").append(value);
        } else {
            out.append("\n").append(name).append(":").append(value);
        }
        last = name;
    }
    out.append("\n\n").append(names).append("\n").append(hex(sha256(what.body)));
    return out;
}

/// "20150830T123600Z"
std::string time_text(wall_time now) {
    const auto day = std::chrono::floor<std::chrono::days>(now);
    const std::chrono::year_month_day date{day};
    const std::chrono::hh_mm_ss time{std::chrono::floor<std::chrono::seconds>(now - day)};
    return fmt::format(
        "{:04}{:02}{:02}T{:02}{:02}{:02}Z",
        static_cast<int>(date.year()),
        static_cast<unsigned>(date.month()),
        static_cast<unsigned>(date.day()),
        time.hours().count(),
        time.minutes().count(),
        time.seconds().count()
    );
}

}  // namespace

std::string canonical_request(const signable& what) {
    const auto sorted = canonical_headers(what.headers);
    return canonical(what, sorted, names_of(sorted));
}

header_list sign(const signable& what, const aws_keys& keys, const signing_scope& scope, wall_time now) {
    return signer(std::string(scope.region), std::string(scope.service)).sign(what, keys, now);
}

header_list signer::sign(const signable& what, const aws_keys& keys, wall_time now) {
    const auto time = time_text(now);
    const auto day = std::string_view(time).substr(0, 8);
    header_list added{{"X-Amz-Date", time}};
    if (!keys.session_token.empty()) added.emplace_back("X-Amz-Security-Token", keys.session_token);

    header_list all(what.headers.begin(), what.headers.end());
    all.insert(all.end(), added.begin(), added.end());
    const auto sorted = canonical_headers(all);
    const auto names = names_of(sorted);

    const auto scope = fmt::format("{}/{}/{}/aws4_request", day, region_, service_);
    const auto text =
        fmt::format("AWS4-HMAC-SHA256\n{}\n{}\n{}", time, scope, hex(sha256(canonical(what, sorted, names))));
    make_key(keys.secret_key, day);
    added.emplace_back(
        "Authorization",
        fmt::format(
            "AWS4-HMAC-SHA256 Credential={}/{}, SignedHeaders={}, Signature={}",
            keys.access_key,
            scope,
            names,
            hex(hmac(bytes_of(key_), text))
        )
    );
    return added;
}

void signer::make_key(const std::string& secret, std::string_view day) {
    if (day == day_ && secret == secret_) return;
    key_ = hmac("AWS4" + secret, day);
    for (const std::string_view step :
         {std::string_view(region_), std::string_view(service_), "aws4_request"sv})
        key_ = hmac(bytes_of(key_), step);
    secret_ = secret;
    day_ = day;
}

}  // namespace millrace::aws
