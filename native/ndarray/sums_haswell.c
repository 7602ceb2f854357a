#define SN_TABLE sn_sums_haswell
#include "sums_loops.h"
