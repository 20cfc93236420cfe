#include <millrace/record.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace millrace {

std::string_view record_batch::store(std::string_view bytes) {
    if (bytes.empty()) return "";  // not null: present, and empty
    if (bytes.size() > block_left_) {
        const auto size = std::max(bytes.size(), std::clamp(bytes_, block_bytes_min, block_bytes_max));
        blocks_.push_back(std::make_unique_for_overwrite<char[]>(size));
        block_end_ = blocks_.back().get() + size;
        block_left_ = size;
    }
    char* const at = block_end_ - block_left_;
    std::memcpy(at, bytes.data(), bytes.size());
    block_left_ -= bytes.size();
    bytes_ += bytes.size();
    return {at, bytes.size()};
}

std::string_view record_batch::adopt(std::string bytes) {
    bytes_ += bytes.size();
    const auto kept = std::make_shared<const std::string>(std::move(bytes));
    shared_.push_back(kept);
    return *kept;
}

std::span<const record_header> record_batch::store(std::vector<record_header> headers) {
    if (headers.empty()) return {};
    bytes_ += headers.size() * sizeof(record_header);
    return headers_.emplace_back(std::move(headers));
}

}  // namespace millrace
