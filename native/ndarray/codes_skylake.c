#define SN_TABLE sn_codes_skylake
#include "codes_loops.h"
