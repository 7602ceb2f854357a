// The functions of oneDNN's C interface that the engine uses: see dnnl.hpp beside it.
#pragma once

#include "dnnl.hpp"
