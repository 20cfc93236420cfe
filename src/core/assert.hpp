/// Invariants, checked in production as well: a wrong state must not go on writing.
#pragma once

namespace millrace {

/// Prints the broken invariant and ends the process.
[[noreturn]] void assertion_failed(const char* what, const char* file, int line) noexcept;

}  // namespace millrace

/// For programming errors only, never for input.
#define MILLRACE_ASSERT(condition) \
    ((condition) ? static_cast<void>(0) : ::millrace::assertion_failed(#condition, __FILE__, __LINE__))
