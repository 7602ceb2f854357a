#define SN_TABLE sn_sums_baseline
#include "sums_loops.h"
