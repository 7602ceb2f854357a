#define SN_TABLE sn_sums_skylake
#include "sums_loops.h"
