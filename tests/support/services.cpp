#include "support/services.hpp"

#include <cstdlib>
#include <fstream>
#include <map>
#include <random>
#include <stdexcept>

namespace millrace::support {

namespace {

const std::filesystem::path addresses_file = MILLRACE_SOURCE_DIR "/build/services/env";

std::map<std::string, std::string> addresses_of_the_file() {
    std::map<std::string, std::string> addresses;
    std::ifstream file{addresses_file};
    for (std::string line; std::getline(file, line);) {
        const auto equals = line.find('=');
        if (equals != std::string::npos) addresses[line.substr(0, equals)] = line.substr(equals + 1);
    }
    return addresses;
}

std::string address(const std::map<std::string, std::string>& file, const std::string& name) {
    if (const char* set = std::getenv(name.c_str()); set != nullptr) return set;
    if (const auto found = file.find(name); found != file.end()) return found->second;
    throw std::runtime_error(
        "no server for this test: " + name + " is neither in the environment nor in " +
        addresses_file.string() +
        "; start the servers by \"./dev services start\", or run \"./dev test\", which does so itself"
    );
}

}  // namespace

const shared_services& services() {
    static const shared_services found = [] {
        const auto file = addresses_of_the_file();
        return shared_services{
            .postgres = address(file, "MILLRACE_TEST_POSTGRES"),
            .kafka = address(file, "MILLRACE_TEST_KAFKA"),
            .kafka_ssl = address(file, "MILLRACE_TEST_KAFKA_SSL"),
            .kafka_sasl = address(file, "MILLRACE_TEST_KAFKA_SASL"),
            .tls = address(file, "MILLRACE_TEST_TLS"),
            .kinesis_endpoint = address(file, "MILLRACE_TEST_KINESIS"),
            .kinesis_tls_endpoint = address(file, "MILLRACE_TEST_KINESIS_TLS"),
            .kinesis_ca = address(file, "MILLRACE_TEST_KINESIS_CA"),
            .dynamodb_endpoint = address(file, "MILLRACE_TEST_DYNAMODB"),
            .moto_endpoint = address(file, "MILLRACE_TEST_MOTO"),
            .registry = address(file, "MILLRACE_TEST_REGISTRY")};
    }();
    return found;
}

std::string unique_name(std::string_view prefix) {
    static std::mt19937_64 random{std::random_device{}()};
    static constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz0123456789";
    std::uniform_int_distribution<std::size_t> any{0, letters.size() - 1};
    std::string name{prefix};
    name += '_';
    for (int i = 0; i < 10; ++i)
        name += letters[any(random)];
    return name;
}

}  // namespace millrace::support
