#include "layer.hpp"

#include <algorithm>

#include "parallel.hpp"

namespace sn {

void Blob::clear_blank() {
    if (!blank) return;
    blank = false;
    clear(diff.edit(), count());
}

namespace {
[[noreturn]] void missing(const std::string& key) {
    throw std::logic_error("option '" + key + "' was not resolved");
}
}  // namespace

bool Options::has(const std::string& key) const {
    return ints_.count(key) || reals_.count(key) || texts_.count(key);
}

int64_t Options::integer(const std::string& key) const {
    const auto found = ints_.find(key);
    if (found == ints_.end() || found->second.empty()) missing(key);
    return found->second.front();
}

int64_t Options::integer(const std::string& key, int64_t otherwise) const {
    return ints_.count(key) ? integer(key) : otherwise;
}

double Options::real(const std::string& key) const {
    const auto found = reals_.find(key);
    if (found == reals_.end() || found->second.empty()) return static_cast<double>(integer(key));
    return found->second.front();
}

double Options::real(const std::string& key, double otherwise) const {
    return reals_.count(key) || ints_.count(key) ? real(key) : otherwise;
}

std::vector<int64_t> Options::integers(const std::string& key) const {
    const auto found = ints_.find(key);
    if (found != ints_.end()) return found->second;
    if (has(key)) missing(key);
    return {};
}

std::vector<double> Options::reals(const std::string& key) const {
    const auto found = reals_.find(key);
    if (found != reals_.end()) return found->second;
    const auto whole = integers(key);
    return {whole.begin(), whole.end()};
}

std::vector<float> Options::reals32(const std::string& key) const {
    std::vector<float> found;
    for (const double one : reals(key)) found.push_back(static_cast<float>(one));
    return found;
}

const std::string& Options::text(const std::string& key) const {
    const auto found = texts_.find(key);
    if (found == texts_.end()) missing(key);
    return found->second;
}

namespace {
// Whether visit(shape) is true for every blob of a layer; it stops at the first that is not.
template <class F>
bool all_shapes(const Layer& layer, F&& visit) {
    for (const auto* blobs : {&layer.bottoms, &layer.tops, &layer.params})
        for (const Blob* blob : *blobs)
            if (!visit(blob->shape())) return false;
    return true;
}
}  // namespace

namespace {
std::vector<Shape> shapes_of(const Layer& layer) {
    std::vector<Shape> shapes;
    all_shapes(layer, [&](const Shape& shape) { return shapes.push_back(shape), true; });
    return shapes;
}
}  // namespace

bool Layer::exchange_kernel() {
    constexpr size_t most = 3;
    if (!prepared || !kernel->stays_beside_others(*this)) return prepared.reset(), false;
    const auto shapes = shapes_of(*this);
    const auto known = std::find_if(shelf.begin(), shelf.end(),
                                    [&](const auto& one) { return one.first == shapes; });
    auto next = known == shelf.end() ? make_kernel(type) : std::move(known->second);
    const bool is_prepared = known != shelf.end();
    if (is_prepared) shelf.erase(known);
    if (shelf.size() == most) shelf.erase(shelf.begin());
    shelf.emplace_back(std::move(*prepared), std::move(kernel));
    kernel = std::move(next);
    prepared.reset();
    return is_prepared;
}

void Layer::note_shapes() {
    prepared = shapes_of(*this);
    ready_at = 0;
}

bool Layer::is_ready() const {
    if (!prepared) return false;
    const uint64_t changes = shape_changes();
    if (ready_at == changes) return true;
    size_t i = 0;
    if (!all_shapes(*this, [&](const Shape& shape) { return shape == (*prepared)[i++]; }))
        return false;
    ready_at = changes;
    return true;
}

void Layer::clear_bottom_diffs(size_t first) const {
    for (size_t i = first; i < bottoms.size(); ++i)
        if (propagate[i]) clear(bottom_diff(i), bottoms[i]->count());
}

void Layer::check_ready() const {
    if (!is_ready())
        refuse("was not prepared for the shapes and options that it has now; run it forward first");
}

namespace {
class Unknown final : public Kernel {
   public:
    void reshape(Layer& layer) override { refuse(layer); }
    void forward(Layer& layer) override { refuse(layer); }

   private:
    [[noreturn]] static void refuse(const Layer& layer) {
        layer.refuse("the engine has no such layer");
    }
};
}  // namespace

// A variable of a function exists before the first file registers a kernel, whatever the order.
std::map<std::string, Factory>& kernels() {
    static std::map<std::string, Factory> all;
    return all;
}

std::unique_ptr<Kernel> make_kernel(const std::string& type) {
    const auto factory = kernels().find(type);
    return factory == kernels().end() ? make<Unknown>() : factory->second();
}

}  // namespace sn
