// A tile of slopes has a row for each of sixteen outputs, a tile of the source one for each of
// sixteen pairs of places: a tap that begins two places later begins one row later.
#include <algorithm>

#include "../engine/turn.hpp"
#include "tiles.hpp"
#include "weight_products.hpp"

namespace sn {

namespace {
constexpr int64_t lanes = WeightJob::lanes, step = WeightJob::step, row = 32, tile = lanes * row;
constexpr int64_t most_taps = WeightJob::most_taps;
// Steps of which the slopes of 32 outputs stay in the nearest cache.
constexpr int64_t most_steps = 16;

void configure() {
    TileShapes shapes;
    std::fill_n(shapes.bytes, 8, uint16_t{64});
    std::fill_n(shapes.rows, 8, static_cast<uint8_t>(lanes));
    shapes.load();
}

// Walks places through the images; nothing lies outside.
class Walk {
   public:
    Walk(const WeightImages& of, int64_t place)
        : of_(of), image_(place / of.places), at_(place % of.places) {}
    const BFloat16* next() {
        const int64_t image = image_, found = of_.at[at_];
        if (++at_ == of_.places) at_ = 0, ++image_;
        if (found < 0 || image >= of_.images) return nullptr;
        return of_.values + (image * of_.rows + found) * of_.channels;
    }

   private:
    const WeightImages& of_;
    int64_t image_, at_;
};

inline __m512i load(const BFloat16* at, int64_t channel) {
    return at ? _mm512_loadu_si512(at + channel) : _mm512_setzero_si512();
}

// Of 32 channels of two places: those that the two halves of an interleaving hold.
inline int64_t channel_of(int64_t half, int64_t number) {
    return number / 4 * 8 + half * 4 + number % 4;
}

template <int half>
inline void turn_half(const BFloat16* const* places, int64_t channel, BFloat16* to, int64_t panel) {
    __m512i x[lanes];
    for (int i = 0; i < lanes; ++i) {
        const __m512i a = load(places[2 * i], channel), b = load(places[2 * i + 1], channel);
        x[i] = half ? _mm512_unpackhi_epi16(a, b) : _mm512_unpacklo_epi16(a, b);
    }
    turn(x);
    for (int i = 0; i < lanes; ++i) {
        const int64_t c = channel_of(half, i);
        _mm512_store_si512(to + c / lanes * panel + c % lanes * row, x[i]);
    }
}

struct Sums {
    float* at;
    int64_t width;  // from one output to the next
};

// The product of two by two tiles.
void multiply(const WeightJob& job, const WeightPanels& panels, const BFloat16* slopes,
              const BFloat16* source, int64_t first, int64_t last, bool adds, const Sums& sums) {
    const int64_t below = panels.steps * tile, beside = panels.pairs * row;
    float* second = sums.at + lanes * sums.width;
    const int64_t bytes = sums.width * 4;
    if (adds) {
        _tile_loadd(0, sums.at, bytes);
        _tile_loadd(1, sums.at + lanes, bytes);
        _tile_loadd(2, second, bytes);
        _tile_loadd(3, second + lanes, bytes);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    for (int64_t segment = 0; segment < panels.segments; ++segment)
        for (int64_t s = first; s < last; ++s) {
            const BFloat16* a = slopes + (segment * job.steps + s) * tile;
            const BFloat16* b = source + (segment * job.pairs + s * lanes) * row;
            _tile_loadd(4, a, 64);
            _tile_loadd(6, b, 64);
            _tile_loadd(7, b + beside, 64);
            _tile_loadd(5, a + below, 64);
            _tile_dpbf16ps(0, 4, 6);
            _tile_dpbf16ps(1, 4, 7);
            _tile_dpbf16ps(2, 5, 6);
            _tile_dpbf16ps(3, 5, 7);
        }
    _tile_stored(0, sums.at, bytes);
    _tile_stored(1, sums.at + lanes, bytes);
    _tile_stored(2, second, bytes);
    _tile_stored(3, second + lanes, bytes);
}

// Sums of each tap, 32 x 32, to where the taps of a weight lie side by side.
void give(const float* sums, int64_t taps, bool adds, float* to, int64_t width) {
    const auto mask = static_cast<__mmask16>((1U << taps) - 1U);
    for (int64_t o = 0; o < step; ++o)
        for (int64_t i = 0; i < step; i += lanes) {
            __m512i x[lanes];
            for (int64_t tap = 0; tap < most_taps; ++tap)
                x[tap] = tap < taps ? _mm512_load_si512(sums + (tap * step + o) * step + i)
                                    : _mm512_setzero_si512();
            for (int64_t l = most_taps; l < lanes; ++l) x[l] = _mm512_setzero_si512();
            turn(x);
            float* at = to + o * width + i * taps;
            for (int64_t l = 0; l < lanes; ++l, at += taps) {
                const __m512 sum = _mm512_castsi512_ps(x[l]);
                const __m512 before = adds ? _mm512_maskz_loadu_ps(mask, at) : _mm512_setzero_ps();
                _mm512_mask_storeu_ps(at, mask, _mm512_add_ps(sum, before));
            }
        }
}
}  // namespace

void pack_slopes(const WeightJob& job, const WeightPanels& panels, int64_t first, int64_t begin,
                 int64_t end) {
    const int64_t panel = panels.steps * tile;
    Walk walk(job.slopes, (first + begin) * step);
    for (int64_t s = begin; s < end; ++s) {
        const BFloat16* places[step];
        for (auto& place : places) place = walk.next();
        for (int64_t c = 0; c < job.slopes.channels; c += step) {
            BFloat16* to = panels.slopes + c / lanes * panel + s * tile;
            turn_half<0>(places, c, to, panel);
            turn_half<1>(places, c, to, panel);
        }
    }
}

void pack_source(const WeightJob& job, const WeightPanels& panels, int64_t first, int64_t begin,
                 int64_t end) {
    const int64_t panel = panels.pairs * row, copy = job.source.channels / lanes * panel;
    const __m512i order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
    Walk walk(job.source, (first + begin) * 2);
    const BFloat16* third = walk.next();
    for (int64_t p = begin; p < end; ++p) {
        const BFloat16* places[3] = {third, walk.next(), nullptr};
        places[2] = third = walk.next();
        for (int64_t c = 0; c < job.source.channels; c += step) {
            BFloat16* to = panels.source + c / lanes * panel + p * row;
            __m512i x[3];
            for (int i = 0; i < 3; ++i) x[i] = _mm512_permutexvar_epi64(order, load(places[i], c));
            _mm512_store_si512(to, _mm512_unpacklo_epi16(x[0], x[1]));
            _mm512_store_si512(to + panel, _mm512_unpackhi_epi16(x[0], x[1]));
            if (job.taps == 1) continue;
            _mm512_store_si512(to + copy, _mm512_unpacklo_epi16(x[1], x[2]));
            _mm512_store_si512(to + copy + panel, _mm512_unpackhi_epi16(x[1], x[2]));
        }
    }
}

void multiply_panels(const WeightJob& job, const WeightPanels& panels, bool adds, float* rows,
                     int64_t begin, int64_t end) {
    const int64_t inputs = job.source.channels, across = inputs / step, taps = job.taps;
    const int64_t copy = inputs / lanes * panels.pairs * row, width = inputs * taps;
    alignas(64) float sums[most_taps * step * step];
    SN_FINISH_STORES();
    configure();
    for (int64_t first = 0; first < job.steps; first += most_steps) {
        const int64_t last = taps > 1 ? job.steps : std::min(job.steps, first + most_steps);
        for (int64_t block = begin; block < end; ++block) {
            const int64_t o = block / across * step, i = block % across * step;
            const BFloat16* a = panels.slopes + o / lanes * panels.steps * tile;
            const BFloat16* b = panels.source + i / lanes * panels.pairs * row;
            float* to = rows + o * width + i * taps;
            if (taps == 1) {
                multiply(job, panels, a, b, first, last, adds || first > 0, {to, width});
                continue;
            }
            for (int64_t tap = 0; tap < taps; ++tap) {
                const int64_t shift = job.shifts[tap];
                multiply(job, panels, a, b + shift % 2 * copy + shift / 2 * row, first, last, false,
                         {sums + tap * step * step, step});
            }
            SN_FINISH_STORES();
            give(sums, taps, adds, to, width);
        }
        if (taps > 1) break;
    }
    _tile_release();
}

}  // namespace sn
