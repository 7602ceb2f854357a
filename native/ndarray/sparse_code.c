#include "sparse_code.h"

#include <math.h>
#include <string.h>

enum { PLACES = 2 * 4, NUMBERS = PLACES + SN_KEPT * 12 / 8 };

/* The bits of a magnitude are a whole number that rises with it. */
static int32_t magnitude_bits(float number) {
    int32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits & 0x7fffffff;
}

/* The places in rising order of all numbers that may be among the SN_KEPT largest: as many columns
 * of numbers have a largest one, and the least of these bounds them from below. */
static int candidates(uint16_t* places, const int32_t* bits, int count) {
    int32_t largest[SN_KEPT] = {0}, least = INT32_MAX;
    for (int i = 0; i + SN_KEPT <= count; i += SN_KEPT)
        for (int column = 0; column < SN_KEPT; ++column)
            largest[column] =
                bits[i + column] > largest[column] ? bits[i + column] : largest[column];
    for (int column = 0; column < SN_KEPT; ++column)
        least = largest[column] < least ? largest[column] : least;
    int kept = 0;
    for (int i = 0; i < count; ++i) {
        places[kept] = (uint16_t)i;
        kept += bits[i] >= least;
    }
    return kept;
}

/* Lets a number sink to its place in a heap whose least number is the first. */
static void sink(int32_t* heap, int count, int32_t number) {
    int at = 0;
    for (int child = 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && heap[child + 1] < heap[child]) ++child;
        if (heap[child] >= number) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = number;
}

/* The places of the largest, in rising order; of equal ones the first. */
static int choose(uint16_t* places, const int32_t* bits, int count) {
    const int found = candidates(places, bits, count);
    if (found <= SN_KEPT) return found;
    int32_t heap[SN_KEPT] = {0};
    for (int i = 0; i < found; ++i) {
        const int32_t number = bits[places[i]];
        if (number > heap[0]) sink(heap, SN_KEPT, number);
    }
    const int32_t least = heap[0];
    int equal = SN_KEPT, kept = 0;
    for (int i = 0; i < found; ++i) equal -= bits[places[i]] > least;
    for (int i = 0; i < found; ++i) {
        const int32_t number = bits[places[i]];
        if (number > least || (number == least && equal-- > 0)) places[kept++] = places[i];
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
    int32_t bits[SN_CHUNK], largest = 0;
    for (int64_t i = 0; i < count; ++i) {
        wanted[i] = values[i] + errors[i];
        bits[i] = magnitude_bits(wanted[i]);
        largest = bits[i] > largest ? bits[i] : largest;
    }
    memset(out, 0, SN_SPARSE_BYTES);
    memcpy(out, magnitudes, sizeof magnitudes);
    if (largest >= magnitude_bits(INFINITY)) return false;
    uint16_t places[SN_CHUNK];
    const int kept = choose(places, bits, (int)count);
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
