/* Writing past the cache. */
#ifndef SPARKNET_STREAM_H
#define SPARKNET_STREAM_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Whether an output of so many bytes, none of which is read, is better written past the
 * cache: it saves reading each line before it is overwritten.
 */
bool sn_stream_pays(size_t bytes);

/* memcpy past the cache; sn_stream_end before another thread may read the result. */
void sn_stream(void* out, const void* in, size_t bytes);
void sn_stream_end(void);

#endif
