#include "functions.hpp"

#include <algorithm>
#include <cmath>

#include "walk.hpp"

namespace dnnl {

namespace {
float logistic(float x) {
    return 1.0F / (1.0F + std::exp(-x));
}

// The logarithm of 1 + e^x.
float soft(float x) {
    return std::max(x, 0.0F) + std::log1p(std::exp(-std::fabs(x)));
}

template <class F>
void each(const float* from, float* to, int64_t count, F f) {
    for (int64_t i = 0; i < count; ++i) to[i] = f(from[i]);
}
}  // namespace

void apply(const post_ops::Op& function, const float* from, float* to, int64_t count) {
    const float a = function.alpha, b = function.beta;
    switch (function.kind) {
        case algorithm::eltwise_relu:
            if (a == 0.0F) return each(from, to, count, [](float x) { return x <= 0 ? 0 : x; });
            return each(from, to, count, [=](float x) { return x <= 0 ? a * x : x; });
        case algorithm::eltwise_clip_v2:
            return each(from, to, count, [=](float x) { return std::min(std::max(x, a), b); });
        case algorithm::eltwise_linear:
            return each(from, to, count, [=](float x) { return a * x + b; });
        case algorithm::eltwise_logistic:
            return each(from, to, count, logistic);
        case algorithm::eltwise_swish:
            return each(from, to, count, [=](float x) { return x * logistic(a * x); });
        case algorithm::eltwise_hardswish:
            return each(from, to, count,
                        [=](float x) { return x * std::min(std::max(a * x + b, 0.0F), 1.0F); });
        case algorithm::eltwise_tanh:
            return each(from, to, count, [](float x) { return std::tanh(x); });
        case algorithm::eltwise_mish:
            return each(from, to, count, [](float x) { return x * std::tanh(soft(x)); });
        case algorithm::eltwise_gelu_erf:
            return each(from, to, count,
                        [](float x) { return 0.5F * x * (1 + std::erf(x * 0.70710678F)); });
        case algorithm::eltwise_gelu_tanh:
            return each(from, to, count, [](float x) {
                return 0.5F * x * (1 + std::tanh(0.79788456F * x * (1 + 0.044715F * x * x)));
            });
        default:
            throw error("this build has no such function");
    }
}

bool adds(const primitive_attr& with) {
    const auto& all = with.after.all();
    return !all.empty() && all[0].kind == algorithm::undef;
}

void finish(const primitive_attr& with, const Operands& operands, float* values, int64_t at,
            int64_t count) {
    int number = 0;
    for (const auto& op : with.after.all()) {
        const int name = DNNL_ARG_ATTR_MULTIPLE_POST_OP(number++) | DNNL_ARG_SRC_1;
        if (op.kind == algorithm::undef) continue;
        if (op.kind != algorithm::binary_add) {
            apply(op, values, values, count);
            continue;
        }
        const memory other = operand(operands, name);
        for (int64_t i = 0; i < count; ++i) values[i] += other.floats()[at + i];
    }
}

// Both lie in the same order without gaps: one line of values.
eltwise_forward::primitive_desc::primitive_desc(const engine&, prop_kind, algorithm kind,
                                                const memory::desc& from, const memory::desc& to,
                                                float alpha, float beta, const primitive_attr&) {
    src = from, dst = to;
    const auto count = static_cast<int64_t>(from.get_size() / sizeof(float));
    if (from.is_strided() && from == to && count == from.count())
        run = [=](const Operands& all) {
            const memory in = operand(all, DNNL_ARG_SRC), out = operand(all, DNNL_ARG_DST);
            const float* x = in.floats();
            float* y = out.floats();
            sn::parallel(
                count,
                [=](int64_t begin, int64_t end) {
                    apply({kind, alpha, beta}, x + begin, y + begin, end - begin);
                },
                16);
        };
    check(false);
}

softmax_forward::primitive_desc::primitive_desc(const engine&, prop_kind, algorithm kind,
                                                const memory::desc& from, const memory::desc& to,
                                                int along, const primitive_attr&) {
    src = from, dst = to;
    const auto axis = static_cast<size_t>(along);
    if (!from.is_strided() || !to.is_strided()) check(false);
    const bool is_log = kind == algorithm::softmax_log;
    const int64_t n = from.sizes()[axis], in = from.strides()[axis], out = to.strides()[axis];
    run = [=](const Operands& all) {
        const memory source = operand(all, DNNL_ARG_SRC), target = operand(all, DNNL_ARG_DST);
        each_line(from, to, axis, [&](int64_t begin, int64_t end, int64_t) {
            const float* x = source.floats() + begin;
            float* y = target.floats() + end;
            float most = x[0], sum = 0;
            for (int64_t i = 1; i < n; ++i) most = std::max(most, x[i * in]);
            for (int64_t i = 0; i < n; ++i) {
                const float value = x[i * in] - most, power = std::exp(value);
                sum += power;
                y[i * out] = is_log ? value : power;
            }
            const float shift = std::log(sum), factor = 1.0F / sum;
            for (int64_t i = 0; i < n; ++i)
                y[i * out] = is_log ? y[i * out] - shift : y[i * out] * factor;
        });
    };
}

softmax_backward::primitive_desc::primitive_desc(const engine&, algorithm kind,
                                                 const memory::desc& diff_from,
                                                 const memory::desc& diff_to,
                                                 const memory::desc& to, int along,
                                                 const description&, const primitive_attr&) {
    src = diff_from, dst = to;
    const auto axis = static_cast<size_t>(along);
    if (!diff_from.is_strided() || diff_from != diff_to || diff_from != to) check(false);
    const bool is_log = kind == algorithm::softmax_log;
    const int64_t n = to.sizes()[axis], step = to.strides()[axis];
    run = [=](const Operands& all) {
        const memory values = operand(all, DNNL_ARG_DST), slopes = operand(all, DNNL_ARG_DIFF_DST),
                     target = operand(all, DNNL_ARG_DIFF_SRC);
        each_line(to, to, axis, [&](int64_t begin, int64_t, int64_t) {
            const float *y = values.floats() + begin, *dy = slopes.floats() + begin;
            float* dx = target.floats() + begin;
            float sum = 0;
            for (int64_t i = 0; i < n * step; i += step) sum += is_log ? dy[i] : dy[i] * y[i];
            for (int64_t i = 0; i < n * step; i += step)
                dx[i] = is_log ? dy[i] - std::exp(y[i]) * sum : y[i] * (dy[i] - sum);
        });
    };
}

}  // namespace dnnl
