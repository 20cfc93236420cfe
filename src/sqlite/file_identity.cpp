#include "file_identity.hpp"

#include <fcntl.h>
#include <sys/stat.h>

namespace millrace::sqlite {

std::optional<file_identity> identity_of(const std::string& path) {
    struct statx found {};
    if (statx(AT_FDCWD, path.c_str(), 0, STATX_INO | STATX_BTIME, &found) != 0) return std::nullopt;
    file_identity identity{
        (std::uint64_t{found.stx_dev_major} << 32) | found.stx_dev_minor, found.stx_ino, 0};
    if ((found.stx_mask & STATX_BTIME) != 0) {
        identity.born_ns = found.stx_btime.tv_sec * 1'000'000'000 + found.stx_btime.tv_nsec;
    }
    return identity;
}

}  // namespace millrace::sqlite
