/// Which file stands under a name now. Not the same as the name: a file may be replaced.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace millrace::sqlite {

struct file_identity {
    std::uint64_t device{0};
    std::uint64_t number{0};
    std::int64_t born_ns{0};  ///< A number may be given again. 0: the file system does not tell.

    bool operator==(const file_identity&) const = default;
};

/// Nothing when there is none, or it cannot be told.
[[nodiscard]] std::optional<file_identity> identity_of(const std::string& path);

}  // namespace millrace::sqlite
