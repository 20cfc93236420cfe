/// Reads the JSON in which programs, container agents and the metadata service give keys. Pure.
#pragma once

#include "keys.hpp"

#include <millrace/error.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace millrace::aws {

/// Who wrote it: a program must say `Version` 1 and may leave out the end; an agent and an instance name the
/// token differently and always end.
enum class key_dialect : std::uint8_t { program, agent };

constexpr std::size_t key_document_bytes_max = 64'000;

/// `source` begins the message, which never holds anything of the document but the service's own code for a
/// failure. `unavailable` for what a next attempt can mend.
[[nodiscard]] result<aws_keys> read_keys(std::string_view json, key_dialect dialect, std::string_view source);

}  // namespace millrace::aws
