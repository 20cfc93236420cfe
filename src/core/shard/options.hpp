/// The settings of reading and handling shards; public, because users set them.
#pragma once

#include <millrace/options.hpp>
