#define SN_TABLE sn_codes_baseline
#include "codes_loops.h"
