// Normalisation by channel, then a factor, a shift and a ReLU, in two passes over the values:
// the second finds a block of channels in the cache where it fits.
#pragma once

#include <functional>
#include <vector>

#include "../engine/broadcast.hpp"
#include "wide_rows.hpp"

namespace sn {

class Normaliser {
   public:
    // Channels begin … end are known now.
    using Ready = std::function<void(int64_t begin, int64_t end)>;

    void resize(const Broadcast& view);

    // x, y, dy and dx are numbers of the type that the view's layout stores.

    // Finds `first` (the mean) and `second` (the variance) of every channel, and after `ready`
    // has set factor and shift, y = relu(x * factor + shift).
    void forward(const dnnl::memory& x, const dnnl::memory& y, const Ready& ready);
    // y alone.
    void apply(const dnnl::memory& x, const dnnl::memory& y);
    // Finds `first`, the sum of g, and `second`, that of g * (x - mean), where g is what of dy
    // passes the ReLU; after `ready` dx = factor * (g - middle - (x - mean) * slant), if dx is.
    void backward(const dnnl::memory& x, const dnnl::memory& dy, const dnnl::memory& dx,
                  const Ready& ready);

    // A value a channel, filled up with zeros to the lanes of the layout.
    std::vector<float> mean, factor, shift, middle, slant;
    std::vector<double> first, second;
    bool relu = false;
    float slope = 0;

   private:
    // Some rows of one block of channels.
    struct Item {
        int64_t begin, rows, block;
    };
    struct Pair {
        double first, second;
    };

    Item item(int64_t number) const;
    template <class T>
    WideRows<T> rows_of(const Item& item, const T* x) const;
    template <class Look, class Merge, class Change>
    void run(Look&& look, Merge&& merge, Change&& change);
    template <class T, class Each>
    void strips(const Item& item, Each&& each) const;
    template <class T>
    void note_moments(int64_t number, const T* x);
    void merge_moments(int64_t block);
    void merge_wide_moments();
    void merge_wide_products();
    template <class T>
    void note_products(int64_t number, const T* x, const T* dy);
    void merge_products(int64_t block);
    template <class T>
    void apply(const Item& item, const T* x, T* y) const;
    template <class T>
    void differentiate(const Item& item, const T* x, const T* dy, T* dx) const;

    Broadcast view_;
    int64_t rows_ = 1, chunks_ = 1;
    std::vector<Pair> pairs_;
    // More channels lie side by side than a vector has lanes: whole rows are walked, and each
    // item's two sums are rows, too.
    bool wide_ = false;
    std::vector<float> sums_;
};

}  // namespace sn
