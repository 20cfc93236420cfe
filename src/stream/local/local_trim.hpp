/// Removes records and emptied shards, in short transactions.
#pragma once

#include "local_admin.hpp"

namespace millrace::local {

[[nodiscard]] result<local_trimmed> trim_stream(
    sqlite::database& db, std::string_view stream, const local_trim& what, const local_admin_options& options
);

}  // namespace millrace::local
