/// Outboxes full of events, and streams full of records.
#pragma once

#include <cstdint>
#include <string>

namespace millrace::bench {

/// What every figure is measured on.
struct dataset {
    std::uint64_t rows{1'000'000};
    std::size_t value_bytes{200};
    std::uint64_t keys{10'000};
    int shards{4};
};

/// Adds the rows to the outbox of this database, which `millrace outbox init` has made.
void fill_outbox(const std::string& database, const dataset& data);

/// Removes the database's files.
void remove_database(const std::string& path);

/// Copies a database that nobody has open.
void copy_database(const std::string& from, const std::string& to);

}  // namespace millrace::bench
