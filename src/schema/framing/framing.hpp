/// How an encoded value names its schema: the wire formats of the registry's clients. Pure.
///
/// In front of the value: 0x00 and the id, four bytes, big-endian. In a header: 0x01 and the 16 bytes of the
/// schema's GUID, the value untouched. Protobuf adds the place of the message within its schema. A NULL value
/// or key has neither; whoever calls does not frame it.
#pragma once

#include <millrace/error.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::schema {

inline constexpr std::string_view key_schema_header = "__key_schema_id";
inline constexpr std::string_view value_schema_header = "__value_schema_id";

using schema_guid = std::array<std::uint8_t, 16>;

/// Five bytes; append the value behind them. Ids are above 0.
void append_schema_id(std::string& out, std::int32_t id);

/// Which message of a Protobuf schema: its place among the messages of the file, then among those nested in
/// it. Zigzag varints, the count first; the first message of the file, `{0}`, is a single zero. Behind the id
/// or the GUID.
void append_message_index(std::string& out, std::span<const std::int32_t> place);

/// The value of a schema header: 0x01 and the GUID; append the message's place for Protobuf.
[[nodiscard]] std::string guid_header(const schema_guid& guid);

/// `89791762-2336-4186-9674-299b90a802e2`, as registries write it.
[[nodiscard]] result<schema_guid> read_guid(std::string_view text);

/// `0` or `0/2/1`, as the configuration names a message. At most 16 deep.
[[nodiscard]] result<std::vector<std::int32_t>> read_message_index(std::string_view text);

}  // namespace millrace::schema
