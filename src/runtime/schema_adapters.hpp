/// The coder of rows on a real registry; only in builds that have schemas.
#pragma once

#include "port/host.hpp"
#include "row_coder.hpp"

#include <millrace/error.hpp>
#include <millrace/schemas.hpp>

#include <memory>

namespace millrace::schema_adapters {

/// As `open_schemas`.
[[nodiscard]] result<std::shared_ptr<schema::row_coder>> open_coder(
    const schema_settings& settings, host& home, schema::registering may = schema::registering::allowed
);

}  // namespace millrace::schema_adapters
