/// The settings of a group; public, because users set them.
#pragma once

#include <millrace/options.hpp>
