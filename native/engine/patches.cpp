#include "patches.hpp"

#include <algorithm>

#include "parallel.hpp"

namespace sn {

namespace {
// Where one kernel cell looks, over all windows: rows along the last axis, one after the other.
class Cell {
   public:
    Cell(const Patches& patches, int64_t number)
        : p_(patches), at_(p_.sizes.size(), 0), from_(at_) {
        for (size_t a = at_.size(); a-- > 0;) {
            from_[a] = number % p_.kernel[a] * p_.dilation[a] - p_.pad[a];
            number /= p_.kernel[a];
        }
    }

    // body(column, place, first, last): windows first … last - 1 of this row look at the image
    // from `place` on, a stride apart; the others see outside.
    template <class F>
    void rows(F&& body) {
        const size_t last = at_.size() - 1;
        const int64_t n = p_.outputs[last], stride = p_.stride[last], from = from_[last];
        const int64_t begin = from >= 0 ? 0 : std::min(n, (-from + stride - 1) / stride);
        const int64_t room = p_.sizes[last] - from;
        const int64_t end =
            room <= 0 ? begin : std::max(begin, std::min(n, (room - 1) / stride + 1));
        const int64_t columns = p_.columns();
        for (int64_t column = 0; column < columns; column += n, step()) {
            int64_t place = 0;
            bool inside = true;
            for (size_t a = 0; a < last; ++a) {
                const int64_t x = from_[a] + at_[a] * p_.stride[a];
                inside = inside && x >= 0 && x < p_.sizes[a];
                place = place * p_.sizes[a] + x;
            }
            place = place * p_.sizes[last] + from + begin * stride;
            body(column, place, inside ? begin : n, inside ? end : n);
        }
    }

   private:
    void step() {
        for (size_t a = at_.size() - 1; a-- > 0;) {
            if (++at_[a] < p_.outputs[a]) return;
            at_[a] = 0;
        }
    }

    const Patches& p_;
    Shape at_, from_;
};
}  // namespace

void Patches::spread(const float* image, float* matrix) const {
    const int64_t cells = count(kernel), area = count(sizes), width = columns();
    const int64_t n = outputs.back(), step = stride.back();
    parallel(rows(), width, [&](int64_t first, int64_t last) {
        for (int64_t r = first; r < last; ++r) {
            const float* plane = image + r / cells * area;
            Cell(*this, r % cells)
                .rows([&](int64_t column, int64_t at, int64_t begin, int64_t end) {
                    float* to = matrix + r * width + column;
                    std::fill(to, to + begin, 0.0F);
                    for (int64_t i = begin; i < end; ++i) to[i] = plane[at + (i - begin) * step];
                    std::fill(to + end, to + n, 0.0F);
                });
        }
    });
}

void Patches::gather(const float* matrix, float* image) const {
    const int64_t cells = count(kernel), area = count(sizes), width = columns();
    const int64_t step = stride.back();
    parallel(channels, cells * width, [&](int64_t first, int64_t last) {
        for (int64_t r = first * cells; r < last * cells; ++r) {
            float* plane = image + r / cells * area;
            Cell(*this, r % cells)
                .rows([&](int64_t column, int64_t at, int64_t begin, int64_t end) {
                    const float* from = matrix + r * width + column;
                    for (int64_t i = begin; i < end; ++i) plane[at + (i - begin) * step] += from[i];
                });
        }
    });
}

}  // namespace sn
