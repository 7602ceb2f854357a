#define SN_TABLE winograd_haswell
#include "winograd_blocks.hpp"
