#define SN_TABLE sn_codes_haswell
#include "codes_loops.h"
