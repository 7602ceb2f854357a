#include "stream.h"

#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { STREAM_FROM = 8 << 20, LINE = 64 };

bool sn_stream_pays(size_t bytes) {
#ifdef __SSE2__
    return bytes >= STREAM_FROM;
#else
    (void)bytes;
    return false;
#endif
}

void sn_stream(void* out, const void* in, size_t bytes) {
#ifdef __SSE2__
    char* target = out;
    const char* source = in;
    size_t lead = (size_t)(-(uintptr_t)target % LINE);
    if (lead > bytes) lead = bytes;
    memcpy(target, source, lead);
    size_t done = lead;
    for (; done + LINE <= bytes; done += LINE)
        for (int i = 0; i < LINE; i += 16)
            _mm_stream_si128((__m128i*)(void*)(target + done + i),
                             _mm_loadu_si128((const __m128i*)(const void*)(source + done + i)));
    memcpy(target + done, source + done, bytes - done);
#else
    memcpy(out, in, bytes);
#endif
}

void sn_stream_end(void) {
#ifdef __SSE2__
    _mm_sfence();
#endif
}
