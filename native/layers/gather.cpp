// Rows that indices choose.
#include "../engine/layer.hpp"
#include "indices.hpp"
#include "no_gradient.hpp"
#include "rows.hpp"

namespace sn {

namespace {
// The values at given places of an axis.
class Gather final : public LinearKernel {
   public:
    bool only_reads() const override { return true; }

    void reshape(Layer& layer) override {
        const Shape& shape = layer.shape();
        const auto axis = static_cast<size_t>(layer.options.integer("axis"));
        index_ = layer.options.integers("index");
        outer_ = count(shape, 0, axis);
        size_ = shape[axis];
        inner_ = count(shape, axis + 1, shape.size());
    }

    void forward(Layer& layer) override {
        const float* x = layer.bottom();
        float* y = layer.top();
        const int64_t *index = index_.data(), size = size_, inner = inner_;
        const auto many = static_cast<int64_t>(index_.size());
        parallel_each(outer_ * many, inner_, [=](int64_t r) {
            std::copy_n(x + (r / many * size + index[r % many]) * inner, inner, y + r * inner);
        });
    }

    void backward(Layer& layer) override {
        if (!layer.propagate[0]) return;
        const float* dy = layer.top_diff();
        float* dx = layer.bottom_diff();
        const int64_t *index = index_.data(), size = size_, inner = inner_;
        const auto many = static_cast<int64_t>(index_.size());
        parallel(outer_, inner_ * many, [=](int64_t begin, int64_t end) {
            std::fill(dx + begin * size * inner, dx + end * size * inner, 0.0F);
            for (int64_t r = begin * many; r < end * many; ++r) {
                float* to = dx + (r / many * size + index[r % many]) * inner;
                for (int64_t i = 0; i < inner; ++i) to[i] += dy[r * inner + i];
            }
        });
    }

   private:
    std::vector<int64_t> index_;
    int64_t outer_ = 0, size_ = 0, inner_ = 0;
};

// Values at places that another blob holds for each record.
class BatchGather final : public LinearKernel {
   public:
    void reshape(Layer& layer) override {
        const Shape& shape = layer.shape();
        const auto axis = static_cast<size_t>(layer.options.integer("axis"));
        size_ = shape[axis];
        inner_ = count(shape, axis + 1, shape.size());
        outer_ = count(shape, 0, axis);
        const auto places = static_cast<size_t>(layer.bottoms[1]->count());
        each_ = outer_ == 0 ? 0 : static_cast<int64_t>(places) / outer_;
        picked_.assign(places, -1);
    }

    void forward(Layer& layer) override {
        find(layer);
        const float* x = layer.bottom();
        float* y = layer.top();
        parallel_each(static_cast<int64_t>(picked_.size()), inner_, [=](int64_t n) {
            std::copy_n(x + picked_[static_cast<size_t>(n)] * inner_, inner_, y + n * inner_);
        });
    }

    void backward(Layer& layer) override {
        refuse_gradient_of(layer, 1, "places");
        if (!layer.propagate[0]) return;
        const float* dy = layer.top_diff();
        float* dx = layer.bottom_diff();
        clear(dx, layer.bottoms[0]->count());
        parallel(outer_, each_ * inner_, [=](int64_t begin, int64_t end) {
            for (int64_t n = begin * each_; n < end * each_; ++n) {
                const int64_t row = picked_[static_cast<size_t>(n)];
                if (row < 0) continue;
                for (int64_t i = 0; i < inner_; ++i) dx[row * inner_ + i] += dy[n * inner_ + i];
            }
        });
    }

   private:
    void find(const Layer& layer) {
        const float* places = layer.bottom(1);
        for (size_t n = 0; n < picked_.size(); ++n) {
            const float place = places[n] < 0 ? places[n] + static_cast<float>(size_) : places[n];
            const int64_t found = index_of(place, size_);
            if (found < 0)
                layer.refuse("place " + number_text(places[n]) +
                             " is out of range for an axis of " + std::to_string(size_));
            picked_[n] = static_cast<int64_t>(n) / each_ * size_ + found;
        }
    }

    int64_t outer_ = 0, size_ = 0, inner_ = 0, each_ = 0;
    std::vector<int64_t> picked_;  // rows of the bottom
};

// Items picked by their numbers (Caffe: batch_reindex_layer.cpp).
class BatchReindex final : public LinearKernel {
   public:
    void reshape(Layer& layer) override {
        num_ = layer.options.integer("num");
        inner_ = layer.options.integer("inner");
        const auto items = static_cast<size_t>(layer.bottoms[1]->count());
        if (num_ != seen_ || items != picked_.size()) picked_.assign(items, -1);
        seen_ = num_;
    }

    void forward(Layer& layer) override {
        find(layer);
        const float* x = layer.bottom();
        float* y = layer.top();
        const int64_t inner = inner_;
        parallel_each(static_cast<int64_t>(picked_.size()), inner_, [=](int64_t n) {
            std::copy_n(x + picked_[static_cast<size_t>(n)] * inner, inner, y + n * inner);
        });
    }

    // Threads share an item's values out, so that no two add to the same one.
    void backward(Layer& layer) override {
        refuse_gradient_of(layer, 1, "indices");
        if (!layer.propagate[0]) return;
        const float* dy = layer.top_diff();
        float* dx = layer.bottom_diff();
        clear(dx, layer.bottoms[0]->count());
        parallel(inner_, static_cast<int64_t>(picked_.size()), [&](int64_t begin, int64_t end) {
            for (size_t n = 0; n < picked_.size(); ++n) {
                if (picked_[n] < 0) continue;
                const float* from = dy + static_cast<int64_t>(n) * inner_;
                float* to = dx + picked_[n] * inner_;
                for (int64_t i = begin; i < end; ++i) to[i] += from[i];
            }
        });
    }

   private:
    void find(const Layer& layer) {
        const float* indices = layer.bottom(1);
        for (size_t n = 0; n < picked_.size(); ++n) {
            picked_[n] = index_of(indices[n], num_);
            if (picked_[n] < 0)
                layer.refuse("index " + number_text(indices[n]) + " is out of range: there are " +
                             std::to_string(num_) + " items");
        }
    }

    int64_t num_ = 0, inner_ = 0, seen_ = 0;
    std::vector<int64_t> picked_;
};

// A row of a table for every index (Caffe: embed_layer.cpp).
class Embed final : public LinearKernel {
   public:
    void reshape(Layer& layer) override {
        rows_ = layer.options.integer("input_dim");
        width_ = layer.options.integer("num_output");
        bias_ = layer.options.flag("bias_term");
        picked_.resize(static_cast<size_t>(layer.bottoms[0]->count()));
    }

    void forward(Layer& layer) override {
        find(layer);
        const float *table = layer.param(0), *bias = bias_ ? layer.param(1) : nullptr;
        float* y = layer.top();
        const int64_t width = width_;
        parallel_each(items(), width_, [=](int64_t n) {
            const float* row = table + picked_[static_cast<size_t>(n)] * width;
            float* out = y + n * width;
            std::copy_n(row, width, out);
            for (int64_t i = 0; bias && i < width; ++i) out[i] += bias[i];
        });
    }

    void backward(Layer& layer) override {
        refuse_gradient_of(layer, 0, "indices");
        const float* dy = layer.top_diff();
        if (layer.learns[0]) add_rows(dy, layer.param_diff(0));
        if (bias_ && layer.learns[1]) add_column_sums(dy, items(), width_, layer.param_diff(1));
    }

   private:
    int64_t items() const { return static_cast<int64_t>(picked_.size()); }

    void find(const Layer& layer) {
        const float* x = layer.bottom();
        for (size_t n = 0; n < picked_.size(); ++n) {
            picked_[n] = index_of(x[n], rows_);
            if (picked_[n] >= 0) continue;
            picked_.assign(picked_.size(), 0);
            layer.refuse("index " + number_text(x[n]) + " is out of range: there are " +
                         std::to_string(rows_) + " rows");
        }
    }

    // Threads share the columns out, so that no two add to the same value.
    void add_rows(const float* dy, float* sums) const {
        parallel(width_, items(), [&](int64_t begin, int64_t end) {
            for (size_t n = 0; n < picked_.size(); ++n) {
                const float* from = dy + static_cast<int64_t>(n) * width_;
                float* to = sums + picked_[n] * width_;
                for (int64_t i = begin; i < end; ++i) to[i] += from[i];
            }
        });
    }

    int64_t rows_ = 0, width_ = 0;
    bool bias_ = false;
    std::vector<int64_t> picked_;
};

// The items that a selector marks; how many is known only now, so the tops change their shape
// in the forward pass (Caffe: filter_layer.cpp).
class Filter final : public LinearKernel {
   public:
    void reshape(Layer& layer) override {
        const int64_t num = layer.options.integer("num");
        if (num != num_) kept_.clear();
        num_ = num;
        kept_.reserve(static_cast<size_t>(num_));
    }

    void forward(Layer& layer) override {
        const float* selector = layer.bottom(layer.tops.size());
        kept_.clear();
        for (int64_t n = 0; n < num_; ++n)
            if (selector[n] != 0.0F) kept_.push_back(n);
        for (size_t t = 0; t < layer.tops.size(); ++t) {
            Shape shape = layer.shape(t);
            shape[0] = static_cast<int64_t>(kept_.size());
            if (shape != layer.tops[t]->shape()) layer.tops[t]->reshape(shape);
            const int64_t inner = count(shape, 1, shape.size());
            const float* x = layer.bottom(t);
            float* y = layer.top(t);
            each(inner, [=](int64_t item, int64_t n) {
                std::copy_n(x + item * inner, inner, y + n * inner);
            });
        }
    }

    void backward(Layer& layer) override {
        refuse_gradient_of(layer, layer.tops.size(), "selector");
        for (size_t t = 0; t < layer.tops.size(); ++t) {
            if (!layer.propagate[t]) continue;
            const int64_t inner = count(layer.shape(t), 1, layer.shape(t).size());
            const float* dy = layer.top_diff(t);
            float* dx = layer.bottom_diff(t);
            clear(dx, layer.bottoms[t]->count());
            if (layer.tops[t]->shape()[0] != static_cast<int64_t>(kept_.size())) continue;
            each(inner, [=](int64_t item, int64_t n) {
                std::copy_n(dy + n * inner, inner, dx + item * inner);
            });
        }
    }

   private:
    template <class F>
    void each(int64_t inner, F copy) const {
        parallel_each(static_cast<int64_t>(kept_.size()), inner,
                      [&](int64_t n) { copy(kept_[static_cast<size_t>(n)], n); });
    }

    int64_t num_ = 0;
    std::vector<int64_t> kept_;
};
}  // namespace

REGISTER_LAYER(Gather, Gather);
REGISTER_LAYER(BatchGather, BatchGather);
REGISTER_LAYER(BatchReindex, BatchReindex);
REGISTER_LAYER(Embed, Embed);
REGISTER_LAYER(Filter, Filter);

}  // namespace sn
