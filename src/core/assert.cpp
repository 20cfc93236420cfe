#include "assert.hpp"

#include <cstdio>
#include <cstdlib>

namespace millrace {

void assertion_failed(const char* what, const char* file, int line) noexcept {
    std::fprintf(stderr, "millrace: broken invariant: %s (%s:%d); please report this\n", what, file, line);
    std::abort();
}

}  // namespace millrace
