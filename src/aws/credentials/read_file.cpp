#include "credentials/read_file.hpp"

#include "credentials/text.hpp"

#include <array>
#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace millrace::aws {

namespace {

class open_file {
public:
    explicit open_file(const std::string& path)
        : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
    ~open_file() {
        if (fd_ >= 0) ::close(fd_);
    }
    open_file(const open_file&) = delete;
    open_file& operator=(const open_file&) = delete;

    [[nodiscard]] int fd() const { return fd_; }

private:
    int fd_;
};

tl::unexpected<error> unreadable(const std::string& path, int number) {
    const auto code = number == ENOENT || number == ENOTDIR ? errc::not_found
                      : number == EACCES                    ? errc::permission_denied
                                                            : errc::unavailable;
    return fail(
        code,
        fmt::format("cannot read {}: {}", shown(path), std::generic_category().message(number)),
        retry_advice::after_delay
    );
}

}  // namespace

result<std::string> read_file(const std::string& path, std::size_t bytes_max) {
    const open_file file(path);
    if (file.fd() < 0) return unreadable(path, errno);
    struct ::stat about {};
    if (::fstat(file.fd(), &about) != 0) return unreadable(path, errno);
    if (!S_ISREG(about.st_mode) && !S_ISCHR(about.st_mode))  // a device: /dev/null is how files are left out
        return fail(errc::invalid_config, fmt::format("{} is not a file; name another", shown(path)));
    std::string content;
    std::array<char, 4096> piece{};
    for (;;) {
        const auto count = ::read(file.fd(), piece.data(), piece.size());
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return unreadable(path, errno);
        if (count == 0) return content;
        content.append(piece.data(), static_cast<std::size_t>(count));
        if (content.size() > bytes_max) {
            return fail(
                errc::invalid_config,
                fmt::format(
                    "{} is larger than {} bytes; is it the file that is meant?", shown(path), bytes_max
                )
            );
        }
    }
}

}  // namespace millrace::aws
