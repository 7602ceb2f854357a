/* Conversion of elements that lie side by side. */
#ifndef SPARKNET_CAST_H
#define SPARKNET_CAST_H

#include <sparknet/ndarray.h>

typedef void (*sn_cast)(void* out, const void* in, int64_t count);

/* The conversion from one type to another; between equal types it copies. */
sn_cast sn_find_cast(sn_dtype to, sn_dtype from);

#endif
