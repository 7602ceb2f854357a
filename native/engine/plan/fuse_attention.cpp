// In the test phase softmax(Q K^T) V is one pass: from the layers before the products, wherever
// they only move values or multiply all by one number, to the Permute behind them.  The last
// product computes it all; the scores, and values in another order, are never written.  What it
// reads is still there: a blob that several layers read is split, and no layer changes it in place.
#include <algorithm>
#include <set>

#include "../matmul/attention_loops.hpp"
#include "attention.hpp"
#include "attention_part.hpp"
#include "fusions.hpp"

namespace sn {

namespace {
using Members = std::set<Layer*>;

int64_t last_size(const Blob& blob, size_t from_end = 1) {
    const Shape& shape = blob.shape();
    return shape.size() < from_end ? 0 : shape[shape.size() - from_end];
}

class Search {
   public:
    Search(Net& net, Layer& head, const Members& barred)
        : net_(net), head_(head), barred_(barred) {}

    // The last product, from its result to what it is made of.
    bool find() {
        if (!is_part(head_, AttentionPart::product) || head_.options.flag("transpose_a") ||
            !is_free(head_))
            return false;
        const Shape& y = head_.tops[0]->shape();
        if (y.size() < 2 || y.size() != head_.shape(0).size()) return false;
        found.rows = last_size(*head_.tops[0], 2), found.width = last_size(*head_.tops[0]);
        found.columns = last_size(*head_.bottoms[0]);
        found.batches = count(y, 0, y.size() - 2);
        const int64_t scores = found.batches * found.rows * found.columns;
        if (scores * found.width == 0 || head_.bottoms[0]->count() != scores) return false;
        if (!operand(head_, 1, found.values)) return false;
        At at = {head_.bottoms[0], &head_};
        found.values.at.factor *= pass(at);
        if (!take_instead(at)) return false;
        Layer* softmax = maker(at);
        if (!softmax || !is_part(*softmax, AttentionPart::probabilities) ||
            softmax->options.integer("inner") != 1 ||
            softmax->options.integer("channels") != found.columns)
            return false;
        enter(at, *softmax);
        if (!find_scores(at, 1)) return false;
        found.result = Matrices::plain(found.batches, found.rows, found.width);
        return true;
    }

    Attention found;
    Members members;

   private:
    // A blob, and the layer that reads it.
    struct At {
        const Blob* blob;
        const Layer* reader;
    };

    // Whether a layer is left to be computed with others.
    bool is_free(const Layer& layer) const {
        return !layer.fused_into && !layer.fused_last && !layer.has_gradients();
    }

    // The layer that makes a blob, if it may be computed with the last product.
    Layer* maker(const At& at) const {
        const auto& writers = at.blob->writers;
        const auto before = std::find_if(writers.rbegin(), writers.rend(), [&](const Layer* layer) {
            return layer->index < at.reader->index;
        });
        if (before == writers.rend()) return nullptr;
        Layer& layer = **before;
        const bool may = is_free(layer) && barred_.count(&layer) == 0 && !layer.bottoms.empty();
        return may ? &layer : nullptr;
    }

    void enter(At& at, Layer& layer, size_t bottom = 0) {
        members.insert(&layer);
        at = {layer.bottoms[bottom], &layer};
    }

    // How a layer's top lies in its bottom, if it makes no values.
    static std::optional<Strided> moves(const Layer& layer, const Blob& top) {
        const auto made = layer.kernel->moves(layer, top);
        if (!made || layer.bottoms.size() != 1) return std::nullopt;
        int64_t values = 1;
        for (const Axis& axis : made->axes) values *= axis.size;
        return values == top.count() ? made : std::nullopt;
    }

    // Goes back over layers that leave values in their order; returns what they multiply by.
    float pass(At& at) {
        float factor = 1;
        for (;;) {
            Layer* layer = maker(at);
            const auto made = layer ? moves(*layer, *at.blob) : std::nullopt;
            const bool stays = made && made->offset == 0 && made->axes.size() == 1 &&
                               made->axes[0].step == 1 &&
                               layer->bottoms[0]->count() == at.blob->count();
            if (!stays) return factor;
            factor *= made->factor;
            enter(at, *layer);
        }
    }

    // Goes back over layers that move values.
    Attention::Operand trace(At at, Matrices view) {
        for (;;) {
            Layer* layer = maker(at);
            const auto made = layer ? moves(*layer, *at.blob) : std::nullopt;
            const auto before = made ? view.behind(*made) : std::nullopt;
            if (!before) return {const_cast<Blob*>(at.blob), view};
            view = *before;
            enter(at, *layer);
        }
    }

    // A factor of a product: matrices whose other axes are those of the result, or 1.
    bool operand(const Layer& product, size_t side, Attention::Operand& to) {
        const Blob& blob = *product.bottoms[side];
        const Shape &shape = blob.shape(), &y = product.tops[0]->shape();
        if (shape.size() != y.size() || blob.count() == 0) return false;
        Matrices view;
        int64_t step = 1;
        for (size_t i = shape.size(); i-- > 0; step *= shape[i]) {
            const Axis axis = {shape[i], step};
            if (i + 1 == shape.size())
                view.columns = {axis};
            else if (i + 2 == shape.size())
                view.rows = {axis};
            else
                view.batch.insert(view.batch.begin(), {y[i], shape[i] == 1 ? 0 : step});
        }
        if (product.options.flag(side == 0 ? "transpose_a" : "transpose_b"))
            std::swap(view.rows, view.columns);
        to = trace({&blob, &product}, view);
        return true;
    }

    // PyTorch: probabilities that are no numbers become one value, by way of |x| > bound, the
    // opposite of that, and Where.
    bool take_instead(At& at) {
        Layer* where = maker(at);
        if (!where || !is_part(*where, AttentionPart::choice)) return true;
        found.instead = {where->bottoms[1], {}};
        const At test = {where->bottoms[0], where};
        enter(at, *where, 2);
        return found.instead.blob->count() == 1 &&
               at.blob->count() == found.batches * found.rows * found.columns &&
               test_of_numbers(test) == origin(at) && pass(at) == 1;
    }

    // The blob whose values a condition calls no numbers; null if it says something else.
    const Blob* test_of_numbers(At at) {
        Layer* opposite = maker(at);
        if (!opposite || !is_part(*opposite, AttentionPart::power) || !is_power(*opposite, -1, 1))
            return nullptr;
        enter(at, *opposite);
        Layer* above = maker(at);
        if (!above || !is_part(*above, AttentionPart::bound) ||
            above->options.real("threshold") >= 0)
            return nullptr;
        enter(at, *above);
        Layer* size = maker(at);
        if (!size || !is_part(*size, AttentionPart::size)) return nullptr;
        enter(at, *size);
        return origin(at);
    }

    // A blob without the Splits before it.
    const Blob* origin(At at) {
        for (;;) {
            Layer* layer = maker(at);
            if (!layer || !layer->kernel->only_splits()) return at.blob;
            enter(at, *layer);
        }
    }

    static bool is_power(const Layer& layer, double scale, double shift) {
        const Options& options = layer.options;
        return options.real("power") == 1 && options.real("scale") == scale &&
               options.real("shift") == shift;
    }

    // The scores, multiplied by a factor: a product, or terms and a product.
    bool find_scores(At at, float factor) {
        factor *= pass(at);
        Layer* layer = maker(at);
        if (!layer) return false;
        if (is_part(*layer, AttentionPart::product)) return find_product(*layer, factor);
        if (is_part(*layer, AttentionPart::bias)) return take_bias(at, *layer, factor);
        if (layer->loss_weights.empty() || !layer->kernel->adds_two(*layer)) return false;
        for (size_t side = 0; side < 2; ++side) {
            const Members before = members;
            const auto terms = found.terms;
            At on = at;
            enter(on, *layer, side);
            if (find_scores(on, factor)) {
                take_term({layer->bottoms[1 - side], layer}, factor);
                return true;
            }
            members = before, found.terms = terms;
        }
        return false;
    }

    Matrices scores() const { return Matrices::plain(found.batches, found.rows, found.columns); }

    void take_term(At at, float factor) {
        Attention::Operand term = trace(at, scores());
        term.at.factor *= factor;
        found.terms.push_back(term);
    }

    // One value for each place along some axes.
    bool take_bias(At at, Layer& layer, float factor) {
        const bool learned = layer.bottoms.size() == 1;
        Blob* values = learned ? layer.params[0] : layer.bottoms[1];
        const Shape& shape = layer.shape();
        const auto first = static_cast<size_t>(layer.options.integer("axis"));
        const size_t after = first + static_cast<size_t>(layer.options.integer("num_axes"));
        if (after > shape.size() || values->count() != count(shape, first, after)) return false;
        const Strided spread = {0,
                                {{count(shape, 0, first), 0},
                                 {values->count(), 1},
                                 {count(shape, after, shape.size()), 0}},
                                1};
        const auto view = scores().behind(spread);
        if (!view) return false;
        enter(at, layer);
        if (!find_scores(at, factor)) return false;
        Attention::Operand term = {values, *view};
        if (!learned) term = trace({values, &layer}, *view);
        term.at.factor *= factor;
        found.terms.push_back(term);
        return true;
    }

    bool find_product(Layer& product, float factor) {
        const Blob& y = *product.tops[0];
        if (last_size(y) != found.columns || last_size(y, 2) != found.rows ||
            y.count() != found.batches * found.rows * found.columns)
            return false;
        found.scale = factor;
        const bool turned = product.options.flag("transpose_a");
        found.depth = last_size(*product.bottoms[0], turned ? 2 : 1);
        members.insert(&product);
        return found.depth > 0 && operand(product, 0, found.queries) &&
               operand(product, 1, found.keys);
    }

    Net& net_;
    Layer& head_;
    const Members& barred_;
};
}  // namespace

// Whether all who read what the members make are computed with them; those of whom it is not true
// are barred.
bool Net::are_hidden(const Layer& head, const std::set<Layer*>& members,
                     std::set<Layer*>& barred) const {
    const size_t before = barred.size();
    for (Layer* member : members)
        for (const Blob* top : member->tops) {
            bool hidden = !top->wanted;
            for (const auto* users : {&top->readers, &top->writers})
                for (Layer* user : *users)
                    if (user->index > member->index && user != &head && members.count(user) == 0)
                        hidden = false;
            for (float weight : member->loss_weights) hidden = hidden && weight == 0;
            if (!hidden) barred.insert(member);
        }
    return barred.size() == before;
}

void Net::fuse_attention(Layer& head) {
    if (keeps_blobs || !is_part(head, AttentionPart::product) || head.fused_into ||
        !attention_loops(AttentionNumbers::float32))
        return;
    std::set<Layer*> barred;
    for (;;) {
        Search search(*this, head, barred);
        if (!search.find()) return;
        if (!are_hidden(head, search.members, barred)) continue;
        Attention& found = search.found;
        found.members.assign(search.members.begin(), search.members.end());
        std::sort(found.members.begin(), found.members.end(),
                  [](const Layer* a, const Layer* b) { return a->index < b->index; });
        for (Layer* member : found.members) member->fused_into = &head;
        head.fused_last = &head;
        Layer* after = next(head);
        if (after && !after->has_gradients() && goes_on(head, *after) && !after->in_place()) {
            const auto made = after->kernel->moves(*after, *after->tops[0]);
            const auto back = made ? inverse(*made) : std::nullopt;
            const auto result = back ? found.result.behind(*back) : std::nullopt;
            if (result && after->tops[0]->count() == head.tops[0]->count() &&
                !after->tops[0]->data.shares(head.tops[0]->data)) {
                found.result = *result;
                join(head, *after);
            }
        }
        head.attention = std::make_shared<const Attention>(std::move(found));
        return;
    }
}

}  // namespace sn
