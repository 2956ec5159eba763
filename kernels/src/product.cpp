#include "product.h"

#include <immintrin.h>

#include <algorithm>
#include <deque>
#include <stdexcept>

#include "phases.h"

namespace ouzel {
namespace {

constexpr size_t BLOCKS_AT_ONCE = 4;  // blocks of a part, at most

size_t parts_for_threads() { return 4 * num_threads(); }

// Parts of `total` units, at least one unit each.
struct Parts {
    size_t total, count;
    Parts(size_t total_, size_t at_most) : total(total_), count(std::max<size_t>(1, std::min(total_, at_most))) {}
    size_t begin(size_t part) const { return total * part / count; }
    size_t size(size_t part) const { return begin(part + 1) - begin(part); }
};

Parts parts_of_rows(size_t count) { return {count, count <= 2 ? 1 : parts_for_threads()}; }
Parts parts_of_blocks(size_t blocks) { return {blocks, std::max(parts_for_threads(), (blocks + BLOCKS_AT_ONCE - 1) / BLOCKS_AT_ONCE)}; }

// Writes a product to memory, with factors and bias, and adds the residual, which has the shape of the product. Of a matrix of several
// experts, only the outputs of an expert are written, to[rows][outputs of an expert].
class Writer final : public Sink {
public:
    Writer(const Product& product, float* to, const float* residual) : Writer(product, 0, product.matrix.layout.outputs, to, residual) {}
    Writer(const Product& product, size_t first_output, size_t num_outputs, float* to, const float* residual)
        : product_(product), first_output_(first_output), num_outputs_(num_outputs), to_(to), residual_(residual) {}

    void take(size_t block, size_t first_row, size_t num_rows, const float* values) override {
        const size_t first = block * BLOCK, count = std::min(BLOCK, product_.matrix.layout.outputs - first);
        const float *factors = product_.factors + first, *bias = product_.bias ? product_.bias + first : nullptr;
        for (size_t row = 0; row < num_rows; row++, values += BLOCK) {
            const size_t at = (first_row + row) * num_outputs_ + first - first_output_;
            const float* residual = residual_ ? residual_ + at : nullptr;
            count == BLOCK ? write_block(to_ + at, values, factors, bias, residual)
                           : write_some(to_ + at, values, factors, bias, residual, count);
        }
    }

private:
    static void write_block(float* to, const float* values, const float* factors, const float* bias, const float* residual) {
        for (size_t i = 0; i < BLOCK; i += 8) {
            const __m256 offset = bias ? _mm256_loadu_ps(bias + i) : _mm256_set1_ps(-0.f);
            const __m256 sum = _mm256_fmadd_ps(_mm256_loadu_ps(values + i), _mm256_loadu_ps(factors + i), offset);
            _mm256_storeu_ps(to + i, residual ? _mm256_add_ps(_mm256_loadu_ps(residual + i), sum) : sum);
        }
    }
    static void write_some(float* to, const float* values, const float* factors, const float* bias, const float* residual, size_t count) {
        for (size_t i = 0; i < count; i++) {
            const float sum = __builtin_fmaf(values[i], factors[i], bias ? bias[i] : -0.f);
            to[i] = residual ? residual[i] + sum : sum;
        }
    }

    const Product& product_;
    size_t first_output_, num_outputs_;
    float* to_;
    const float* residual_;
};

// Collects the outputs [first, first + 64) of all rows in to[row][64]; outputs after the last one are 0.
class GroupWriter final : public Sink {
public:
    GroupWriter(const Product& product, size_t first_block, float* to) : product_(product), first_block_(first_block), to_(to) {}

    void take(size_t block, size_t first_row, size_t num_rows, const float* values) override {
        const size_t first = block * BLOCK, count = std::min(BLOCK, product_.matrix.layout.outputs - first);
        float* to = to_ + first_row * GROUP + (block - first_block_) * BLOCK;
        for (size_t row = 0; row < num_rows; row++, values += BLOCK, to += GROUP) {
            for (size_t i = 0; i < count; i++)
                to[i] = __builtin_fmaf(values[i], product_.factors[first + i], product_.bias ? product_.bias[first + i] : -0.f);
            for (size_t i = count; i < BLOCK; i++) to[i] = 0;
        }
    }

private:
    const Product& product_;
    size_t first_block_;
    float* to_;
};

bool are_wide(const Level& level, size_t count) { return level.wide_from && count >= level.wide_from; }

void prepare(Rows& rows, const Level& level, size_t count, const Layout& layout, bool may_be_wide) {
    rows.resize(count, layout, level.chunk(count), may_be_wide && are_wide(level, count));
}

void put(const Level& level, const Source& source, Rows& rows, size_t row) {
    const float* from = source.rows + row * rows.inputs;
    const RowNorm& norm = source.norm;
    norm.weight ? level.put_normed_row(rows, row, from, norm.weight, norm.epsilon) : level.put_row(rows, row, from);
}

// Normalises a row of a product [count][size] in its place if there is a norm, and adds the residual, which has the same shape.
void normalise(const Level& level, const RowNorm& norm, float* products, const float* residual, size_t size, size_t row) {
    if (norm.weight) level.normalise_row(products + row * size, size, norm.weight, norm.epsilon, residual ? residual + row * size : nullptr);
}

// Calls `body` for each row, in parts.
template <class Body>
Phase each_row(size_t count, Body body) {
    const Parts parts = parts_of_rows(count);
    return {parts.count, [parts, body](size_t part) {
                for (size_t row = parts.begin(part); row < parts.begin(part + 1); row++) body(row);
            }};
}

// A phase that puts all rows of a source, for each of some kinds of rows.
Phase rows_phase(const Level& level, const Source& source, const std::vector<Rows*>& kinds) {
    return each_row(source.count, [&level, &source, kinds](size_t row) {
        for (Rows* rows : kinds) put(level, source, *rows, row);
    });
}

// The rows of a source for matrices of several kinds: quantised in larger and in smaller groups, or in bf16 for all.
class RowsOfKinds {
public:
    void prepare(const Level& level, size_t count, const std::vector<Product>& products, bool may_be_wide) {
        used_.clear();
        is_wide_ = may_be_wide && are_wide(level, count);
        for (const Product& product : products) {
            const Layout& layout = product.matrix.layout;
            Rows& rows = of(layout);
            if (std::find(used_.begin(), used_.end(), &rows) != used_.end()) continue;
            ouzel::prepare(rows, level, count, layout, is_wide_);
            used_.push_back(&rows);
        }
    }
    Rows& of(const Layout& layout) { return kinds_[is_wide_ ? 0 : layout.scales / 2]; }
    const std::vector<Rows*>& used() const { return used_; }

private:
    Rows kinds_[3];  // for 1, 2 and 4 scales in a cell
    bool is_wide_ = false;
    std::vector<Rows*> used_;
};

// A phase that multiplies all rows by a matrix.
Phase product_phase(const Level& level, const Product& product, const Rows& rows, Writer& writer) {
    const Parts parts = parts_of_blocks(product.matrix.layout.blocks());
    return {parts.count, [parts, &level, &product, &rows, &writer](size_t part) {
                level.multiply(product.matrix, parts.begin(part), parts.size(part), rows, writer);
            }};
}

// A value of an operand of a tile, less the middle. `bytes` is the place of the value in the first vector.
int read_value(const uint8_t* bytes, size_t operand, const Layout& layout) {
    if (layout.bits == 8) return bytes[operand * 64] - 128;
    const int low = bytes[operand / 2 * 64] >> operand % 2 * 4 & 15;
    if (layout.table != NO_TABLE) return TABLES[layout.table][low] - 128;
    if (layout.bits == 4) return low - 8;
    return (low | (bytes[HIGH_BITS_AT + operand / 4 * 64] >> operand % 4 * 2 & 3) << 4) - 32;
}

// Outputs that two matrices make of the same rows: 64 of a gate and 64 of up, or the last ones of an expert or a layer.
struct GatedPart {
    const Product &gate, &up;
    size_t gate_block, up_block, num_blocks;
};

// Multiplies all rows by both, and puts a group of the rows of the next product.
void put_gated_rows(const Level& level, const GatedPart& part, const Rows& rows, Rows& to, size_t group, Gate activation) {
    static thread_local Buffer<float> gates_of_thread, ups_of_thread;
    float* gates = gates_of_thread.reserve(rows.count * GROUP);
    float* ups = ups_of_thread.reserve(rows.count * GROUP);
    if (part.num_blocks < 2) std::fill_n(gates, rows.count * GROUP, 0.f), std::fill_n(ups, rows.count * GROUP, 0.f);
    GroupWriter gate_writer(part.gate, part.gate_block, gates), up_writer(part.up, part.up_block, ups);
    level.multiply(part.gate.matrix, part.gate_block, part.num_blocks, rows, gate_writer);
    level.multiply(part.up.matrix, part.up_block, part.num_blocks, rows, up_writer);
    for (size_t row = 0; row < rows.count; row++) level.put_gated_group(to, row, group, gates + row * GROUP, ups + row * GROUP, activation);
}

// The parts of several matrices, one after the other.
struct ProductPart {
    size_t product, first_block, num_blocks;
};

std::vector<ProductPart> parts_of_products(const std::vector<Product>& products, const Heads& heads) {
    std::vector<ProductPart> found;
    for (size_t i = 0; i < products.size(); i++) {
        const Layout& layout = products[i].matrix.layout;
        const Parts parts = i < heads.norm_weights.size() ? Parts(layout.blocks(), layout.outputs / heads.size) : parts_of_blocks(layout.blocks());
        for (size_t part = 0; part < parts.count; part++) found.push_back({i, parts.begin(part), parts.size(part)});
    }
    return found;
}

// Turns the heads [first, first + size) of a row.
void turn_heads(const Level& level, const Heads& heads, size_t product, float* first, size_t size, size_t row) {
    const size_t half = heads.turned / 2;
    for (float* head = first; head < first + size; head += heads.size)
        level.turn_head(head, heads.size, heads.turned, heads.norm_weights[product], heads.epsilon, heads.cos + row * half, heads.sin + row * half);
}

}  // namespace

void multiply(const Level& level, const Source& source, const std::vector<Product>& products, const std::vector<float*>& to,
              const Results& results, bool may_be_wide) {
    if (!source.count) return;
    const Heads& heads = results.heads;
    const size_t num_normed = results.norms.size(), num_turned = heads.norm_weights.size();
    static thread_local RowsOfKinds rows_of_thread;
    RowsOfKinds& rows = rows_of_thread;
    rows.prepare(level, source.count, products, may_be_wide);
    std::vector<Writer> writers;
    for (size_t i = 0; i < products.size(); i++) writers.emplace_back(products[i], to[i], i || num_normed ? nullptr : results.residual);
    const std::vector<ProductPart> parts = parts_of_products(products, heads);
    const Phase phases[] = {
        rows_phase(level, source, rows.used()),
        {parts.size(),
         [&](size_t number) {
             const ProductPart& part = parts[number];
             const Matrix& matrix = products[part.product].matrix;
             level.multiply(matrix, part.first_block, part.num_blocks, rows.of(matrix.layout), writers[part.product]);
             if (part.product < num_normed || part.product >= num_turned) return;
             float* first = to[part.product] + part.first_block * BLOCK;
             for (size_t row = 0; row < source.count; row++, first += matrix.layout.outputs)
                 turn_heads(level, heads, part.product, first, part.num_blocks * BLOCK, row);
         }},
        each_row(source.count, [&](size_t row) {
            for (size_t i = 0; i < num_normed; i++) {
                const size_t outputs = products[i].matrix.layout.outputs;
                normalise(level, results.norms[i], to[i], i ? nullptr : results.residual, outputs, row);
                if (i < num_turned) turn_heads(level, heads, i, to[i] + row * outputs, outputs, row);
            }
        }),
    };
    run_phases(phases, num_normed ? 3 : 2, level.finish);
}

void feed_forward(const Level& level, const FeedForward& layer, const float* rows, const float* residual, size_t count, float* to) {
    if (!count) return;
    static thread_local Rows rows_of_thread[3];
    static thread_local Buffer<float> middle_of_thread;
    Rows &first = rows_of_thread[0], &normed = rows_of_thread[1], &inner = rows_of_thread[2];
    const size_t hidden = layer.down.matrix.layout.outputs, groups = layer.down.matrix.layout.groups();
    float* middle = layer.has_projection ? middle_of_thread.reserve(count * hidden) : nullptr;
    const float* x = layer.has_projection ? middle : rows;
    if (layer.has_projection) prepare(first, level, count, layer.projection.matrix.layout, layer.may_be_wide);
    prepare(normed, level, count, layer.gate.matrix.layout, layer.may_be_wide);
    prepare(inner, level, count, layer.down.matrix.layout, layer.may_be_wide);
    const Source source{rows, count}, middle_source{x, count, layer.norm};
    Writer projected(layer.projection, middle, layer.projected_norm.weight ? nullptr : residual);
    Writer result(layer.down, to, layer.result_norm.weight ? nullptr : x);
    const Phase gated{groups, [&](size_t group) {
                          const size_t block = group * 2, blocks = std::min<size_t>(2, layer.gate.matrix.layout.blocks() - block);
                          put_gated_rows(level, {layer.gate, layer.up, block, block, blocks}, normed, inner, group, layer.activation);
                      }};
    std::vector<Phase> phases;
    if (layer.has_projection) {
        phases.push_back(rows_phase(level, source, {&first}));
        phases.push_back(product_phase(level, layer.projection, first, projected));
    }
    phases.push_back(each_row(count, [&](size_t row) {
        normalise(level, layer.projected_norm, middle, residual, hidden, row);
        put(level, middle_source, normed, row);
    }));
    phases.push_back(gated);
    phases.push_back(product_phase(level, layer.down, inner, result));
    if (layer.result_norm.weight)
        phases.push_back(each_row(count, [&](size_t row) { normalise(level, layer.result_norm, to, x, hidden, row); }));
    run_phases(phases.data(), phases.size(), level.finish);
}

namespace {

constexpr size_t SUMMED_AT_ONCE = 256;  // outputs of a part of the last phase

// A slot: an expert that some rows have chosen, and its rows, one for each choice, in the order of the choices.
struct Slot {
    size_t expert, first, count;  // `first`: the place of its first row among the rows of all slots
};

// The choices of all rows by slot. The slots with the most rows come first.
struct SortedChoices {
    std::vector<Slot> slots;
    std::vector<uint32_t> slot_of;   // [choice]
    std::vector<uint32_t> place_of;  // [choice]: the place of its row among the rows of all slots

    SortedChoices(const Choices& choices, size_t num_choices, size_t num_experts) : slot_of(num_choices), place_of(num_choices) {
        std::vector<size_t> counts(num_experts), slot_of_expert(num_experts), next(num_experts);
        for (size_t i = 0; i < num_choices; i++) {
            const int32_t expert = choices.experts[i];
            if (expert < 0 || size_t(expert) >= num_experts) throw std::out_of_range("there is no such expert");
            counts[size_t(expert)]++;
        }
        for (size_t expert = 0; expert < num_experts; expert++)
            if (counts[expert]) slots.push_back({expert, 0, counts[expert]});
        std::stable_sort(slots.begin(), slots.end(), [](const Slot& a, const Slot& b) { return a.count > b.count; });
        for (size_t slot = 0, first = 0; slot < slots.size(); first += slots[slot++].count) {
            slots[slot].first = next[slots[slot].expert] = first;
            slot_of_expert[slots[slot].expert] = slot;
        }
        for (size_t i = 0; i < num_choices; i++) {
            const size_t expert = size_t(choices.experts[i]);
            slot_of[i] = uint32_t(slot_of_expert[expert]), place_of[i] = uint32_t(next[expert]++);
        }
    }
};

// The rows of each slot, which stay allocated from call to call.
struct RowsOfSlots {
    struct Both {
        Rows inputs, inner;
    };
    std::deque<Both> slots;
    Buffer<float> results;  // [choice, by place][outputs]

    void prepare(const Level& level, const Experts& experts, const SortedChoices& sorted) {
        while (slots.size() < sorted.slots.size()) slots.emplace_back();
        for (size_t slot = 0; slot < sorted.slots.size(); slot++) {
            ouzel::prepare(slots[slot].inputs, level, sorted.slots[slot].count, experts.gate_up.matrix.layout, experts.may_be_wide);
            ouzel::prepare(slots[slot].inner, level, sorted.slots[slot].count, experts.down.matrix.layout, experts.may_be_wide);
        }
    }
};

}  // namespace

void mix_experts(const Level& level, const Experts& experts, const Choices& choices, const float* rows, const float* residual, size_t count,
                 float* to) {
    if (!count) return;
    static thread_local RowsOfSlots rows_of_thread;
    RowsOfSlots& memory = rows_of_thread;
    const size_t num_choices = count * choices.per_row, hidden = experts.gate_up.matrix.layout.inputs, outputs = experts.outputs();
    const SortedChoices sorted(choices, num_choices, experts.num_experts);
    memory.prepare(level, experts, sorted);
    float* results = memory.results.reserve(num_choices * outputs);
    const size_t num_slots = sorted.slots.size(), groups = experts.down.matrix.layout.groups();
    const size_t inner_blocks = experts.inner() / BLOCK, output_blocks = outputs / BLOCK;
    const Parts choice_parts(num_choices, parts_for_threads());
    const Parts down_parts = parts_of_blocks(output_blocks);  // of a slot
    const size_t sum_parts = (outputs + SUMMED_AT_ONCE - 1) / SUMMED_AT_ONCE;
    const Phase phases[] = {
        {choice_parts.count,
         [&](size_t part) {
             for (size_t i = choice_parts.begin(part); i < choice_parts.begin(part + 1); i++) {
                 const size_t slot = sorted.slot_of[i];
                 level.put_row(memory.slots[slot].inputs, sorted.place_of[i] - sorted.slots[slot].first, rows + i / choices.per_row * hidden);
             }
         }},
        {num_slots * groups,
         [&](size_t part) {
             const size_t slot = part / groups, group = part % groups;
             const size_t gate_block = sorted.slots[slot].expert * 2 * inner_blocks + group * 2;
             const size_t num_blocks = std::min<size_t>(2, inner_blocks - group * 2);
             put_gated_rows(level, {experts.gate_up, experts.gate_up, gate_block, gate_block + inner_blocks, num_blocks},
                            memory.slots[slot].inputs, memory.slots[slot].inner, group, experts.activation);
         }},
        {num_slots * down_parts.count,
         [&](size_t number) {
             const size_t index = number / down_parts.count, part = number % down_parts.count;
             const Slot& slot = sorted.slots[index];
             Writer writer(experts.down, slot.expert * outputs, outputs, results + slot.first * outputs, nullptr);
             level.multiply(experts.down.matrix, slot.expert * output_blocks + down_parts.begin(part), down_parts.size(part),
                            memory.slots[index].inner, writer);
         }},
        {count * sum_parts,
         [&](size_t part) {
             const size_t row = part / sum_parts, begin = part % sum_parts * SUMMED_AT_ONCE, end = std::min(begin + SUMMED_AT_ONCE, outputs);
             float* sums = to + row * outputs;
             if (residual)
                 std::copy(residual + row * outputs + begin, residual + row * outputs + end, sums + begin);
             else
                 std::fill(sums + begin, sums + end, 0.f);
             for (size_t i = row * choices.per_row; i < (row + 1) * choices.per_row; i++) {
                 const float* result = results + sorted.place_of[i] * outputs;
                 const float weight = choices.weights[i];
                 for (size_t output = begin; output < end; output++) sums[output] += weight * result[output];
             }
         }},
    };
    run_phases(phases, 4, level.finish);
}

void decode_output(const Matrix& matrix, const float* factors, size_t output, float* to) {
    const Layout& layout = matrix.layout;
    const size_t lane = output % BLOCK, scales = size_t(layout.scales);
    const uint8_t* cell = matrix.block(output / BLOCK);
    const auto half = [&](const uint8_t* p) {
        uint16_t bits;
        __builtin_memcpy(&bits, p + lane * 2, 2);
        return _cvtsh_ss(bits);
    };
    for (size_t input = 0; input < layout.inputs; input++) {
        const size_t place = input % GROUP, s = place * scales / GROUP;
        if (input && !place) cell += layout.cell_bytes();
        const float scale = half(cell + s * 64), offset = layout.has_offsets ? half(cell + (scales + s) * 64) : 0.f;
        const uint8_t* bytes = cell + layout.header_bytes() + lane / 16 * layout.tile_bytes() + lane % 16 * 4 + place % 4;
        to[input] = __builtin_fmaf(float(read_value(bytes, place / 4, layout)), scale, offset) * factors[output];
    }
}

}  // namespace ouzel
