/// The settings of a relay; public, because users set them.
#pragma once

#include <millrace/options.hpp>
