/// All roles of addresses, for tests of what holds in each.
#pragma once

#include <millrace/url.hpp>

#include <array>

namespace millrace::support {

inline constexpr std::array url_roles{
    url_role::outbox,
    url_role::sink,
    url_role::stream,
    url_role::state,
    url_role::dead_letters,
    url_role::positions};

}  // namespace millrace::support
