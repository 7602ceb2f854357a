#include "attention_product.hpp"

#include <algorithm>

#include "../layer.hpp"
#include "../parallel.hpp"
#include "../pass.hpp"

namespace sn {

namespace {
// Scores of a block, as many as half of a second cache holds; and rows, so that K and V are read
// for many.
constexpr int64_t scores_of_block = 1 << 15, least_rows = 14, most_rows = 112;

int64_t lines(int64_t values) {
    return (values + 15) / 16 * 16;
}

const void* moved(const void* values, int64_t by, bool rounded) {
    const auto width = static_cast<int64_t>(rounded ? sizeof(uint16_t) : sizeof(float));
    return static_cast<const char*>(values) + by * width;
}

// Where the parts of a thread's memory begin, in values.
class Room {
   public:
    explicit Room(float* memory) : memory_(memory) {}
    float* take(int64_t values) {
        float* found = memory_ ? memory_ + taken_ : nullptr;
        taken_ += lines(values);
        return found;
    }
    int64_t taken() const { return taken_; }

   private:
    float* memory_;
    int64_t taken_ = 0;
};
}  // namespace

void AttentionProduct::reshape(const Attention& attention, AttentionNumbers numbers) {
    // More products of bytes could pass the largest number of 32 bits.
    constexpr int64_t most_bytes = 1 << 16;
    const bool fits = std::max(attention.columns, attention.depth) <= most_bytes;
    if (numbers == AttentionNumbers::int8 && !fits) numbers = AttentionNumbers::bf16;
    loops_ = attention_loops(numbers);
    batches_ = attention.batches, rows_ = attention.rows, columns_ = attention.columns;
    depth_ = attention.depth, width_ = attention.width;
    places_.q = attention.queries.at.places(), places_.k = attention.keys.at.places();
    places_.v = attention.values.at.places(), places_.y = attention.result.places();
    places_.terms.clear();
    for (const auto& term : attention.terms) places_.terms.push_back(term.at.places());
    const int64_t most = std::clamp(scores_of_block / columns_, least_rows, most_rows);
    blocks_ = (rows_ + most - 1) / most;
    block_ = (rows_ + blocks_ - 1) / blocks_;
}

// Gives the parts of a thread's memory to a job; returns how many values they take.
int64_t AttentionProduct::lay_out(AttentionJob& job, float* memory) const {
    Room room(memory);
    const int64_t all = loops_->whole(columns_), wide = loops_->whole(width_);
    const int64_t steps = loops_->words(depth_);
    job.keys = reinterpret_cast<Word*>(room.take(all * steps));
    job.values = reinterpret_cast<Word*>(room.take(loops_->words(columns_) * wide));
    job.queries = reinterpret_cast<Word*>(room.take(block_ * steps));
    // Also room for sixteen keys while they are packed.
    job.scores = room.take(std::max(block_ * all, 16 * lines(steps)));
    job.results = room.take(block_ * wide);
    job.factors = room.take(block_);
    if (loops_->numbers == 4) {
        job.key_steps = room.take(all);
        job.key_sums = reinterpret_cast<int32_t*>(room.take(all));
        job.value_steps = room.take(wide), job.value_means = room.take(wide);
        job.room = room.take(lines(depth_));
    }
    return room.taken();
}

void AttentionProduct::run(const Attention& attention, Blob& y) {
    const Matrices &q = attention.queries.at, &k = attention.keys.at, &v = attention.values.at;
    AttentionJob job = {};
    job.columns = columns_, job.depth = depth_, job.width = width_;
    const auto is_rounded = [](const Attention::Operand& one) {
        return one.blob->data.is_rounded();
    };
    job.rounded = rounds() && (is_rounded(attention.queries) || is_rounded(attention.keys) ||
                               is_rounded(attention.values));
    job.rounds = rounds() && y.rounded;
    const auto read = [&](const Attention::Operand& one) -> const void* {
        if (job.rounded) return one.blob->data.read_rounded();
        return one.blob->data.read();
    };
    job.q = read(attention.queries), job.k = read(attention.keys);
    job.v = read(attention.values);
    if (job.rounds)
        job.y = y.data.write_rounded();
    else
        job.y = y.data.write();
    job.q_row = q.row_step(), job.q_step = q.column_step();
    job.k_row = k.column_step(), job.k_step = k.row_step();
    job.v_row = v.row_step(), job.v_step = v.column_step();
    job.y_row = attention.result.row_step(), job.y_step = attention.result.column_step();
    job.scale = attention.scale * q.factor * k.factor, job.result_scale = v.factor;
    job.instead = attention.instead.blob ? attention.instead.blob->data.read() : nullptr;
    for (const auto& term : attention.terms)
        job.terms.push_back(
            {term.blob->data.read(), term.at.row_step(), term.at.column_step(), term.at.factor});
    const int64_t units = batches_ * blocks_, parts = std::min<int64_t>(threads(), units);
    const int64_t values = lay_out(job, nullptr);
    auto* memory =
        static_cast<float*>(scratch().room(static_cast<size_t>(parts * values) * sizeof(float)));
    parallel_each(parts, units / parts * block_ * columns_ * (depth_ + width_) / 8,
                  [=](int64_t part) {
                      AttentionJob own = job;
                      lay_out(own, memory + part * values);
                      run_units(own, units * part / parts, units * (part + 1) / parts);
                  });
}

// Blocks of rows, matrix by matrix.
void AttentionProduct::run_units(AttentionJob& job, int64_t begin, int64_t end) const {
    const AttentionJob all = job;
    for (int64_t unit = begin; unit < end; ++unit) {
        const auto i = static_cast<size_t>(unit / blocks_);
        const int64_t block = unit % blocks_, first = rows_ * block / blocks_;
        job.rows = rows_ * (block + 1) / blocks_ - first;
        job.q = moved(all.q, places_.q[i] + first * job.q_row, job.rounded);
        job.y = const_cast<void*>(moved(all.y, places_.y[i] + first * job.y_row, job.rounds));
        for (size_t t = 0; t < job.terms.size(); ++t)
            job.terms[t].values =
                all.terms[t].values + places_.terms[t][i] + first * job.terms[t].row_step;
        if (unit == begin || block == 0) {
            job.k = moved(all.k, places_.k[i], job.rounded);
            job.v = moved(all.v, places_.v[i], job.rounded);
            loops_->pack(job);
        }
        loops_->run(job);
    }
}

}  // namespace sn
