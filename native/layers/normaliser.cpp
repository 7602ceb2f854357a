#include "normaliser.hpp"

#include <algorithm>

#include "strip.hpp"

namespace sn {

namespace {
constexpr int64_t most = Strip<float>::most;
}  // namespace

void Normaliser::resize(const Broadcast& view) {
    view_ = view;
    // As much as stays in the L2 cache, and no longer sums than float32 can add precisely.
    constexpr int64_t most_rows = 256, cached = 65536;
    wide_ = view.lanes > most;
    rows_ = view.lanes == 1 ? 4096 : std::clamp<int64_t>(cached / view.lanes, 16, most_rows);
    chunks_ = (view.inner + rows_ - 1) / rows_;
    const auto channels = static_cast<size_t>(view.padded());
    for (auto* values : {&mean, &factor, &shift, &middle, &slant}) values->assign(channels, 0.0F);
    first.assign(channels, 0.0);
    second.assign(channels, 0.0);
    const auto parts = static_cast<size_t>(view.outer * view.blocks * chunks_ * view.lanes);
    pairs_.resize(wide_ ? 0 : parts);
    sums_.resize(wide_ ? 2 * parts : 0);
}

// Numbered block by block, so that one thread has a block for itself where there are enough.
Normaliser::Item Normaliser::item(int64_t number) const {
    const int64_t chunk = number % chunks_, outer = number / chunks_ % view_.outer;
    const int64_t block = number / chunks_ / view_.outer, row = chunk * rows_;
    return {((outer * view_.blocks + block) * view_.inner + row) * view_.lanes,
            std::min(rows_, view_.inner - row), block};
}

template <class T>
WideRows<T> Normaliser::rows_of(const Item& item, const T* x) const {
    WideRows<T> rows;
    rows.x = x + item.begin;
    rows.rows = item.rows, rows.width = view_.lanes;
    rows.mean = mean.data(), rows.factor = factor.data(), rows.shift = shift.data();
    rows.middle = middle.data(), rows.slant = slant.data();
    rows.least = relu ? slope : 1.0F;
    return rows;
}

// Reads all items, merges the results block by block, then changes the items.  The sums are divided
// in the same way for any number of threads.
template <class Look, class Merge, class Change>
void Normaliser::run(Look&& look, Merge&& merge, Change&& change) {
    const int64_t each = view_.outer * chunks_, cost = rows_ * view_.lanes * 4;
    const auto all = [&](auto&& visit, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) visit(i);
    };
    // The items that were read last are in the cache.
    const auto back = [&](int64_t begin, int64_t end) {
        for (int64_t i = end; i-- > begin;) change(i);
    };
    if (view_.blocks % threads() == 0 || view_.blocks >= 4 * threads()) {
        parallel_each(view_.blocks, each * cost, [&](int64_t block) {
            all(look, block * each, (block + 1) * each);
            merge(block);
            back(block * each, (block + 1) * each);
        });
        return;
    }
    const int64_t items = view_.blocks * each;
    parallel(items, cost, [&](int64_t begin, int64_t end) { all(look, begin, end); });
    for (int64_t block = 0; block < view_.blocks; ++block) merge(block);
    parallel(items, cost, back);
}

// each(strip, first lane, whether the strip's lanes are values of one channel)
template <class T, class Each>
void Normaliser::strips(const Item& item, Each&& each) const {
    Strip<T> strip;
    strip.least = relu ? slope : 1.0F;
    const auto meet = [&](int64_t lane, int64_t step) {
        const int64_t channel = item.block * view_.lanes + lane;
        for (int64_t l = 0; l < strip.width; ++l) {
            const auto c = static_cast<size_t>(channel + l * step);
            strip.mean[l] = mean[c], strip.factor[l] = factor[c], strip.shift[l] = shift[c];
            strip.middle[l] = middle[c], strip.slant[l] = slant[c];
        }
    };
    if (view_.lanes > 1) {
        strip.rows = item.rows, strip.stride = view_.lanes;
        for (int64_t lane = 0; lane < view_.lanes; lane += most) {
            strip.width = std::min(most, view_.lanes - lane);
            meet(lane, 1);
            each(strip, item.begin + lane, lane);
        }
        return;
    }
    strip.stride = strip.width = most, strip.rows = item.rows / most;
    meet(0, 0);
    if (strip.rows > 0) each(strip, item.begin, 0);
    const int64_t rest = item.rows % most;
    strip.rows = rest > 0, strip.width = rest;
    if (rest > 0) each(strip, item.begin + item.rows - rest, 0);
}

namespace {
// Two groups of values, their means and squared distances (Chan, Golub and LeVeque, 1979).
void join(double& mean, double& squares, double before, double m, double s, double values) {
    const double apart = m - mean, whole = before + values;
    mean += apart * values / whole;
    squares += s + apart * apart * before * values / whole;
}
}  // namespace

template <class T>
void Normaliser::note_moments(int64_t number, const T* x) {
    if (wide_) {
        float* sums = sums_.data() + 2 * number * view_.lanes;
        return wide_moments(rows_of(item(number), x), sums, sums + view_.lanes);
    }
    Pair* pairs = pairs_.data() + number * view_.lanes;
    double before = 0;
    strips<T>(item(number), [&](Strip<T>& strip, int64_t begin, int64_t lane) {
        float means[most], squares[most];
        strip.x = x + begin;
        strip_moments(strip, means, squares);
        for (int64_t l = 0; l < strip.width; ++l) {
            const auto m = static_cast<double>(means[l]), s = static_cast<double>(squares[l]);
            if (view_.lanes > 1) {
                pairs[lane + l] = {m, s};
                continue;
            }
            if (before == 0) pairs[0] = {0, 0};
            const auto values = static_cast<double>(strip.rows);
            join(pairs[0].first, pairs[0].second, before, m, s, values);
            before += values;
        }
    });
}

void Normaliser::merge_wide_moments() {
    std::fill(first.begin(), first.end(), 0.0);
    std::fill(second.begin(), second.end(), 0.0);
    double before = 0;
    const float* sums = sums_.data();
    for (int64_t i = 0; i < view_.outer * chunks_; ++i, sums += 2 * view_.lanes) {
        const auto values = static_cast<double>(item(i).rows);
        for (int64_t l = 0; l < view_.lanes; ++l) {
            const auto c = static_cast<size_t>(l);
            join(first[c], second[c], before, static_cast<double>(sums[l]),
                 static_cast<double>(sums[view_.lanes + l]), values);
        }
        before += values;
    }
    for (double& squares : second) squares /= before;
}

void Normaliser::merge_moments(int64_t block) {
    if (wide_) return merge_wide_moments();
    const int64_t each = view_.outer * chunks_;
    for (int64_t l = 0; l < view_.lanes; ++l) {
        double m = 0, s = 0, before = 0;
        for (int64_t i = block * each; i < (block + 1) * each; ++i) {
            const Pair& pair = pairs_[static_cast<size_t>(i * view_.lanes + l)];
            const auto values = static_cast<double>(item(i).rows);
            join(m, s, before, pair.first, pair.second, values);
            before += values;
        }
        const auto c = static_cast<size_t>(block * view_.lanes + l);
        first[c] = m;
        second[c] = s / before;
    }
}

template <class T>
void Normaliser::note_products(int64_t number, const T* x, const T* dy) {
    if (wide_) {
        float* sums = sums_.data() + 2 * number * view_.lanes;
        const Item part = item(number);
        auto rows = rows_of(part, x);
        rows.dy = dy + part.begin;
        return wide_products(rows, sums, sums + view_.lanes);
    }
    Pair* pairs = pairs_.data() + number * view_.lanes;
    std::fill_n(pairs, view_.lanes, Pair{0, 0});
    strips<T>(item(number), [&](Strip<T>& strip, int64_t begin, int64_t lane) {
        float sums[most], with_x[most];
        strip.x = x + begin, strip.dy = dy + begin;
        strip_products(strip, sums, with_x);
        for (int64_t l = 0; l < strip.width; ++l) {
            Pair& pair = pairs[view_.lanes > 1 ? lane + l : 0];
            pair.first += static_cast<double>(sums[l]);
            pair.second += static_cast<double>(with_x[l]);
        }
    });
}

void Normaliser::merge_wide_products() {
    std::fill(first.begin(), first.end(), 0.0);
    std::fill(second.begin(), second.end(), 0.0);
    const float* sums = sums_.data();
    for (int64_t i = 0; i < view_.outer * chunks_; ++i, sums += 2 * view_.lanes)
        for (int64_t l = 0; l < view_.lanes; ++l) {
            first[static_cast<size_t>(l)] += static_cast<double>(sums[l]);
            second[static_cast<size_t>(l)] += static_cast<double>(sums[view_.lanes + l]);
        }
}

void Normaliser::merge_products(int64_t block) {
    if (wide_) return merge_wide_products();
    const int64_t each = view_.outer * chunks_;
    for (int64_t l = 0; l < view_.lanes; ++l) {
        Pair sum = {0, 0};
        for (int64_t i = block * each; i < (block + 1) * each; ++i) {
            const Pair& pair = pairs_[static_cast<size_t>(i * view_.lanes + l)];
            sum.first += pair.first;
            sum.second += pair.second;
        }
        const auto c = static_cast<size_t>(block * view_.lanes + l);
        first[c] = sum.first, second[c] = sum.second;
    }
}

template <class T>
void Normaliser::apply(const Item& item, const T* x, T* y) const {
    if (wide_) {
        auto rows = rows_of(item, x);
        rows.to = y + item.begin;
        return wide_scale(rows);
    }
    strips<T>(item, [&](Strip<T>& strip, int64_t begin, int64_t) {
        strip.x = x + begin, strip.to = y + begin;
        strip_scale(strip);
    });
}

template <class T>
void Normaliser::differentiate(const Item& item, const T* x, const T* dy, T* dx) const {
    if (wide_) {
        auto rows = rows_of(item, x);
        rows.dy = dy + item.begin, rows.to = dx + item.begin;
        return wide_differentiate(rows);
    }
    strips<T>(item, [&](Strip<T>& strip, int64_t begin, int64_t) {
        strip.x = x + begin, strip.dy = dy + begin, strip.to = dx + begin;
        strip_differentiate(strip);
    });
}

void Normaliser::forward(const dnnl::memory& x, const dnnl::memory& y, const Ready& ready) {
    typed(view_.desc, [&](auto type) {
        using T = decltype(type);
        const T* from = values_of<T>(x);
        run([&](int64_t i) { note_moments(i, from); },
            [&](int64_t block) {
                merge_moments(block);
                ready(block * view_.lanes, std::min((block + 1) * view_.lanes, view_.operands));
            },
            [&](int64_t i) { apply(item(i), from, values_of<T>(y)); });
    });
}

void Normaliser::apply(const dnnl::memory& x, const dnnl::memory& y) {
    typed(view_.desc, [&](auto type) {
        using T = decltype(type);
        run([](int64_t) {}, [](int64_t) {},
            [&](int64_t i) { apply<T>(item(i), values_of<T>(x), values_of<T>(y)); });
    });
}

void Normaliser::backward(const dnnl::memory& x, const dnnl::memory& dy, const dnnl::memory& dx,
                          const Ready& ready) {
    typed(view_.desc, [&](auto type) {
        using T = decltype(type);
        const T *from = values_of<T>(x), *slopes = values_of<T>(dy);
        run([&](int64_t i) { note_products(i, from, slopes); },
            [&](int64_t block) {
                merge_products(block);
                ready(block * view_.lanes, std::min((block + 1) * view_.lanes, view_.operands));
            },
            [&](int64_t i) {
                if (dx) differentiate(item(i), from, slopes, values_of<T>(dx));
            });
    });
}

}  // namespace sn
