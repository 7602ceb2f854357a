// What the machine can do, and how fast: the reference for the speed of layers.
#include <sparknet/engine.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>

#include "guard.hpp"
#include "instructions.hpp"
#include "matmul/gemm.hpp"
#include "parallel.hpp"
#include "primitive.hpp"

namespace {

using Steady = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

// The shortest of the runs that fit into half a second, without the first, which warms up.
template <class F>
double shortest(F&& run) {
    run();
    double best = 1e300;
    const auto start = Steady::now();
    for (int count = 0; count < 3 || Seconds(Steady::now() - start).count() < 0.5; ++count) {
        const auto begin = Steady::now();
        run();
        best = std::min(best, Seconds(Steady::now() - begin).count());
    }
    return std::max(best, 1e-9);
}

// Memory of which every thread has touched its own part.
std::unique_ptr<float[]> filled(int64_t count, float value) {
    std::unique_ptr<float[]> values(new float[static_cast<size_t>(count)]);
    sn::parallel(count, [&](int64_t begin, int64_t end) {
        std::fill(&values[static_cast<size_t>(begin)], values.get() + end, value);
    });
    return values;
}

}  // namespace

int sn_has_bf16() {
    return sn::has_bf16();
}

int sn_has_int8() {
    return sn::has_int8();
}

sn_status sn_measure_arithmetic(double* operations) {
    return sn::guarded([&] {
        constexpr int64_t side = 1536;
        const auto a = filled(side * side, 1.0F), b = filled(side * side, 0.5F);
        const auto c = filled(side * side, 0.0F);
        const double seconds = shortest([&] {
            sn::gemm(false, false, side, side, side, 1.0F, a.get(), b.get(), 0.0F, c.get());
        });
        *operations = 2.0 * side * side * side / seconds;
    });
}

// Factors in the layouts that oneDNN prefers, as the engine keeps them.
sn_status sn_measure_bf16(double* operations) {
    return sn::guarded([&] {
        *operations = 0;
        if (!sn_has_bf16()) return;
        constexpr int64_t side = 1536;
        using dnnl::memory;
        const memory::desc any({side, side}, memory::data_type::bf16, memory::format_tag::any);
        const dnnl::matmul::primitive_desc chosen(sn::cpu(), any, any, sn::plain_desc({side, side}),
                                                  sn::attributes());
        const dnnl::matmul product(chosen);
        const auto a = sn::zeroed(chosen.src_desc()), b = sn::zeroed(chosen.weights_desc());
        const auto c = sn::zeroed(chosen.dst_desc());
        const double seconds = shortest([&] {
            sn::run(product, {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}});
        });
        *operations = 2.0 * side * side * side / seconds;
    });
}

sn_status sn_measure_memory(double* bytes) {
    return sn::guarded([&] {
        constexpr int64_t count = int64_t{1} << 25;
        const auto a = filled(count, 0.0F), b = filled(count, 1.0F), c = filled(count, 2.0F);
        const double seconds = shortest([&] {
            sn::parallel_each(count, [&](int64_t i) {
                a[static_cast<size_t>(i)] =
                    b[static_cast<size_t>(i)] + 3.0F * c[static_cast<size_t>(i)];
            });
        });
        *bytes = 3.0 * sizeof(float) * count / seconds;
    });
}
