/// What `--schemas` adds to the demonstration: values go out as Avro by a schema of a registry, and a
/// consumer in Python decodes each of them.
#pragma once

#include "support/process.hpp"
#include "support/sql_connection.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace millrace::demo {

struct schema_arguments {
    std::string registry;  ///< Its address.
    std::string services;  ///< The script that runs Python with the client.
    std::string consumer;  ///< The program in Python.
};

/// One thread owns it.
class schema_consumer {
public:
    schema_consumer(schema_arguments given, std::filesystem::path folder);

    /// The section `schemas:` of the relay's configuration for `topic`, with its schema in a file beside.
    [[nodiscard]] std::string section(const std::string& topic) const;

    void start(const std::string& kafka, const std::string& topic, std::uint64_t orders);

    struct findings {
        std::string client;          ///< Which, as it names itself.
        std::uint64_t decoded{0};    ///< Different orders, found as they were written.
        std::uint64_t otherwise{0};  ///< Records that say something else.
    };

    /// Waits for its end and compares what it decoded with the table of orders.
    findings compare(support::sql_connection& shop);

private:
    [[nodiscard]] std::filesystem::path output() const { return folder_ / "decoded"; }
    [[nodiscard]] std::filesystem::path errors() const { return folder_ / "consumer.log"; }

    schema_arguments given_;
    std::filesystem::path folder_;
    std::optional<support::process> process_;
};

}  // namespace millrace::demo
