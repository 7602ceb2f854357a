#include "sparse_code.h"

#include <math.h>
#include <string.h>

enum { PLACES = 2 * 4, NUMBERS = PLACES + SN_KEPT * 12 / 8 };

/* Lets a number sink to its place in a heap whose least number is the first. */
static void sink(float* heap, int count, float number) {
    int at = 0;
    for (int child = 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && heap[child + 1] < heap[child]) ++child;
        if (heap[child] >= number) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = number;
}

/* The least of the SN_KEPT largest magnitudes; -1 where there are not so many. */
static float threshold(const float* wanted, int64_t count) {
    if (count <= SN_KEPT) return -1;
    float heap[SN_KEPT];
    for (int i = 0; i < SN_KEPT; ++i) heap[i] = -1;
    for (int64_t i = 0; i < count; ++i) {
        const float magnitude = fabsf(wanted[i]);
        if (magnitude > heap[0]) sink(heap, SN_KEPT, magnitude);
    }
    return heap[0];
}

/* The places of the largest, in rising order; of those at the threshold the first ones. */
static int choose(uint16_t* places, const float* wanted, int64_t count) {
    const float least = threshold(wanted, count);
    int above = 0, kept = 0;
    for (int64_t i = 0; i < count; ++i) above += fabsf(wanted[i]) > least;
    int equal = SN_KEPT - above;
    for (int64_t i = 0; i < count; ++i) {
        const float magnitude = fabsf(wanted[i]);
        if (magnitude > least || (magnitude == least && equal-- > 0)) places[kept++] = (uint16_t)i;
    }
    return kept;
}

/* The mean of the magnitudes that are, or are not, above a bound; 0 for none. */
static float mean(const float* wanted, const uint16_t* places, int kept, double bound, bool above) {
    double sum = 0;
    int count = 0;
    for (int i = 0; i < kept; ++i) {
        const double magnitude = fabs((double)wanted[places[i]]);
        if ((magnitude > bound) != above) continue;
        sum += magnitude;
        ++count;
    }
    return count ? (float)(sum / count) : 0.0F;
}

bool sn_encode_chunk(char* out, const float* values, float* errors, int64_t count) {
    float wanted[SN_CHUNK], magnitudes[2] = {NAN, NAN};
    bool finite = true;
    for (int64_t i = 0; i < count; ++i) {
        wanted[i] = values[i] + errors[i];
        finite = finite && isfinite(wanted[i]);
    }
    memset(out, 0, SN_SPARSE_BYTES);
    memcpy(out, magnitudes, sizeof magnitudes);
    if (!finite) return false;
    uint16_t places[SN_KEPT];
    const int kept = choose(places, wanted, count);
    double sum = 0;
    for (int i = 0; i < kept; ++i) sum += fabs((double)wanted[places[i]]);
    const double bound = kept ? sum / kept : 0;
    magnitudes[0] = mean(wanted, places, kept, bound, false);
    magnitudes[1] = mean(wanted, places, kept, bound, true);
    memcpy(out, magnitudes, sizeof magnitudes);
    memcpy(errors, wanted, (size_t)count * sizeof *errors);
    uint8_t* bytes = (uint8_t*)out;
    for (int i = 0; i < SN_KEPT; ++i) {
        const unsigned place = i < kept ? places[i] : SN_CHUNK - 1;
        uint8_t* pair = bytes + PLACES + i / 2 * 3;
        if (i % 2 == 0) {
            pair[0] = (uint8_t)place;
            pair[1] = (uint8_t)(place >> 8);
        } else {
            pair[1] = (uint8_t)(pair[1] | place << 4);
            pair[2] = (uint8_t)(place >> 4);
        }
        if (i >= kept) continue;
        const float number = wanted[place];
        const int high = fabs((double)number) > bound, negative = number < 0;
        bytes[NUMBERS + i / 4] |= (uint8_t)((high | negative << 1) << 2 * (i % 4));
        errors[place] = number - (negative ? -magnitudes[high] : magnitudes[high]);
    }
    return true;
}

void sn_decode_chunk(float* out, const char* data, int64_t count) {
    const uint8_t* bytes = (const uint8_t*)data;
    float magnitudes[2];
    memcpy(magnitudes, data, sizeof magnitudes);
    const bool finite = isfinite(magnitudes[0]) && isfinite(magnitudes[1]);
    for (int64_t i = 0; i < count; ++i) out[i] = finite ? 0.0F : NAN;
    if (!finite) return;
    int64_t before = -1;
    for (int i = 0; i < SN_KEPT; ++i) {
        const uint8_t* pair = bytes + PLACES + i / 2 * 3;
        const int place = i % 2 == 0 ? pair[0] | (pair[1] & 15) << 8 : pair[1] >> 4 | pair[2] << 4;
        if (place >= count || place <= before) continue;
        before = place;
        const int number = bytes[NUMBERS + i / 4] >> 2 * (i % 4) & 3;
        out[place] = number & 2 ? -magnitudes[number & 1] : magnitudes[number & 1];
    }
}
