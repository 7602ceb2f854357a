#define SN_TABLE attention_haswell
#include "attention_blocks.hpp"
