#include "credentials/environment.hpp"

#include "credentials/text.hpp"

#include <cstdlib>

namespace millrace::aws {

environment process_environment() {
    return [](const std::string& name) {
        const char* value = std::getenv(name.c_str());
        return value == nullptr ? std::string() : std::string(without_blanks(value));
    };
}

}  // namespace millrace::aws
