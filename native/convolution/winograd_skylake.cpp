#define SN_TABLE winograd_skylake
#include "winograd_blocks.hpp"
