// Values blurred on the places of a permutohedral lattice.
#include <sparknet/transform.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "../failure.hpp"
#include "../guard.hpp"
#include "../parallel.hpp"

namespace {

// Rows that are blurred together: their values of a place lie side by side.
constexpr int64_t block = 4;

bool within(const int32_t* places, int64_t count, int64_t size) {
    return std::all_of(places, places + count, [=](int32_t at) { return at >= 0 && at < size; });
}

// One block of rows; `held` and `other` have block values for each place and one place more, which
// stays 0 and stands for neighbours that are not there.
void blur(const sn_lattice& lattice, double* held, double* other, bool transposed) {
    const int64_t size = lattice.size;
    for (int64_t step = 0; step < lattice.corners; ++step) {
        const int64_t axis = transposed ? lattice.corners - 1 - step : step;
        const int32_t* before = lattice.neighbours + 2 * axis * size;
        const int32_t* after = before + size;
        for (int64_t i = 0; i < size; ++i) {
            const double *a = held + before[i] * block, *b = held + after[i] * block;
            for (int64_t r = 0; r < block; ++r)
                other[i * block + r] = held[i * block + r] + 0.5 * (a[r] + b[r]);
        }
        std::swap(held, other);
    }
    if (lattice.corners % 2) std::copy_n(held, size * block, other);
}

void filter(double* out, const double* in, int64_t rows, const sn_lattice& lattice, bool transposed,
            std::vector<double>& room) {
    const int64_t points = lattice.points, length = (lattice.size + 1) * block;
    std::fill(room.begin(), room.end(), 0.0);
    double *held = room.data(), *other = held + length;
    for (int64_t corner = 0; corner < lattice.corners; ++corner) {
        const int32_t* places = lattice.places + corner * points;
        const double* shares = lattice.shares + corner * points;
        for (int64_t p = 0; p < points; ++p)
            for (int64_t r = 0; r < rows; ++r)
                held[places[p] * block + r] += shares[p] * in[r * points + p];
    }
    blur(lattice, held, other, transposed);
    for (int64_t r = 0; r < rows; ++r) std::fill_n(out + r * points, points, 0.0);
    for (int64_t corner = 0; corner < lattice.corners; ++corner) {
        const int32_t* places = lattice.places + corner * points;
        const double* shares = lattice.shares + corner * points;
        for (int64_t p = 0; p < points; ++p)
            for (int64_t r = 0; r < rows; ++r)
                out[r * points + p] += shares[p] * lattice.scale * held[places[p] * block + r];
    }
}

}  // namespace

extern "C" sn_status sn_lattice_filter(double* out, const double* in, int64_t rows,
                                       const sn_lattice* lattice, int transposed) {
    return sn::guarded([&] {
        const int64_t corners = lattice->corners;
        if (!within(lattice->places, corners * lattice->points, lattice->size) ||
            !within(lattice->neighbours, 2 * corners * lattice->size, lattice->size + 1))
            throw sn::Failure(SN_ERROR_INDEX, "a place lies outside the lattice");
        const int64_t blocks = (rows + block - 1) / block;
        const int64_t teams = std::max<int64_t>(1, std::min<int64_t>(sn::threads(), blocks));
        const auto length = static_cast<size_t>(2 * (lattice->size + 1) * block);
        std::vector<std::vector<double>> rooms(static_cast<size_t>(teams),
                                               std::vector<double>(length));
        sn::parallel_each(teams, lattice->points * corners * block, [&](int64_t team) {
            for (int64_t one = team; one < blocks; one += teams) {
                const int64_t first = one * block;
                filter(out + first * lattice->points, in + first * lattice->points,
                       std::min(block, rows - first), *lattice, transposed != 0,
                       rooms[static_cast<size_t>(team)]);
            }
        });
    });
}
