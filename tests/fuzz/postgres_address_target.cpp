#include "server.hpp"
#include "targets.hpp"

#include <string>

namespace millrace::fuzz {

/// The text is a password and, behind a zero byte, the rest of an address.
void postgres_address(std::string_view text) {
    const auto zero = std::min(text.find('\0'), text.size());
    const auto password = text.substr(0, zero);
    const auto rest = zero < text.size() ? text.substr(zero + 1) : std::string_view("h/d");
    const auto found =
        postgres::parse_server("postgresql://u:" + std::string(password) + "@" + std::string(rest));
    // Short ones stand by chance in any sentence.
    const bool secret = password.size() >= 8 && rest.find(password) == std::string_view::npos &&
                        password.find_first_of("/@?&=: ") == std::string_view::npos;
    if (!found) {
        require(found.error().code == errc::invalid_argument, "a wrong address is an invalid argument");
        require(
            !secret || found.error().detail.find(password) == std::string::npos, "a refusal shows no password"
        );
        return;
    }
    require(!secret || found->name.find(password) == std::string::npos, "a name shows no password");
    require(
        found->find("table") == nullptr && found->find("schema") == nullptr, "what is ours is not libpq's"
    );
    if (found->table) {
        require(
            postgres::parse_table_name(found->table->quoted()) == *found->table,
            "a table reads as it is quoted"
        );
    }
}

}  // namespace millrace::fuzz
