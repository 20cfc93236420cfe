#include "targets.hpp"

#include <cstddef>
#include <cstdint>

/// What libFuzzer calls; the build names the target.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    millrace::fuzz::MILLRACE_FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
    return 0;
}
