#include "support/line_follower.hpp"

#include <fstream>
#include <iterator>

namespace millrace::support {

std::string line_follower::read_new() {
    std::ifstream file{file_, std::ios::binary};
    if (!file.seekg(static_cast<std::streamoff>(offset_))) return {};
    std::string text{std::istreambuf_iterator<char>{file}, {}};
    offset_ += text.size();
    return text;
}

}  // namespace millrace::support
