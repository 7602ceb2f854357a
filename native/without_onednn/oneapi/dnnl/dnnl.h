#pragma once

#include "dnnl.hpp"
