#define SN_NARROW
#define SN_TABLE attention_narrow
#include "attention_blocks.hpp"
