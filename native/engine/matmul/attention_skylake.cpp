#define SN_TABLE attention_skylake
#include "attention_blocks.hpp"
