#include "product.h"

#include <immintrin.h>

#include <algorithm>
#include <memory>
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

void prepare(Rows& rows, const Level& level, size_t count, const Layout& layout, bool may_be_wide) {
    rows.resize(count, layout, level.chunk(count), may_be_wide && level.wide_from && count >= level.wide_from);
}

void put(const Level& level, const Source& source, Rows& rows, size_t row) {
    const float* from = source.rows + row * rows.inputs;
    source.norm_weight ? level.put_normed_row(rows, row, from, source.norm_weight, source.epsilon) : level.put_row(rows, row, from);
}

// A phase that puts all rows of a source.
Phase rows_phase(const Level& level, const Source& source, Rows& rows) {
    const Parts parts = parts_of_rows(source.count);
    return {parts.count, [parts, &level, &source, &rows](size_t part) {
                for (size_t row = parts.begin(part); row < parts.begin(part + 1); row++) put(level, source, rows, row);
            }};
}

// The rows of a source for matrices of several kinds: rows that are quantised in larger and in smaller groups.
class RowsOfKinds {
public:
    void prepare(const Level& level, size_t count, const std::vector<Product>& products, bool may_be_wide) {
        used_.clear();
        for (const Product& product : products) {
            const Layout& layout = product.matrix.layout;
            Rows& rows = of(layout);
            if (std::find(used_.begin(), used_.end(), &rows) != used_.end()) continue;
            ouzel::prepare(rows, level, count, layout, may_be_wide);
            used_.push_back(&rows);
        }
    }
    Rows& of(const Layout& layout) { return kinds_[layout.scales == 1 ? 0 : layout.scales == 2 ? 1 : 2]; }

    Phase phase(const Level& level, const Source& source) {
        const Parts parts = parts_of_rows(source.count);
        return {parts.count, [this, parts, &level, &source](size_t part) {
                    for (size_t row = parts.begin(part); row < parts.begin(part + 1); row++)
                        for (Rows* rows : used_) put(level, source, *rows, row);
                }};
    }

private:
    Rows kinds_[3];
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

}  // namespace

void multiply(const Level& level, const Source& source, const std::vector<Product>& products, const std::vector<float*>& to,
              const float* residual, const Heads& heads, bool may_be_wide) {
    if (!source.count) return;
    static thread_local RowsOfKinds rows_of_thread;
    RowsOfKinds& rows = rows_of_thread;
    rows.prepare(level, source.count, products, may_be_wide);
    std::vector<Writer> writers;
    for (size_t i = 0; i < products.size(); i++) writers.emplace_back(products[i], to[i], i ? nullptr : residual);
    const std::vector<ProductPart> parts = parts_of_products(products, heads);
    const Phase phases[] = {
        rows.phase(level, source),
        {parts.size(),
         [&](size_t number) {
             const ProductPart& part = parts[number];
             const Matrix& matrix = products[part.product].matrix;
             level.multiply(matrix, part.first_block, part.num_blocks, rows.of(matrix.layout), writers[part.product]);
             if (part.product >= heads.norm_weights.size()) return;
             const size_t outputs = matrix.layout.outputs, half = heads.size / 2;
             float* head = to[part.product] + part.first_block * BLOCK;
             for (size_t row = 0; row < source.count; row++, head += outputs)
                 level.turn_head(head, heads.size, heads.norm_weights[part.product], heads.epsilon, heads.cos + row * half, heads.sin + row * half);
         }},
    };
    run_phases(phases, 2, level.finish);
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
    const Source source{rows, count}, middle_source{x, count, layer.norm_weight, layer.epsilon};
    Writer projected(layer.projection, middle, residual), result(layer.down, to, x);
    const Phase gated{groups, [&](size_t group) {
                          static thread_local Buffer<float> gates_of_thread, ups_of_thread;
                          float* gates = gates_of_thread.reserve(count * GROUP);
                          float* ups = ups_of_thread.reserve(count * GROUP);
                          const size_t block = group * 2, blocks = std::min<size_t>(2, layer.gate.matrix.layout.blocks() - block);
                          if (blocks < 2) std::fill_n(gates, count * GROUP, 0.f), std::fill_n(ups, count * GROUP, 0.f);
                          GroupWriter gate_writer(layer.gate, block, gates), up_writer(layer.up, block, ups);
                          level.multiply(layer.gate.matrix, block, blocks, normed, gate_writer);
                          level.multiply(layer.up.matrix, block, blocks, normed, up_writer);
                          for (size_t row = 0; row < count; row++)
                              level.put_gated_group(inner, row, group, gates + row * GROUP, ups + row * GROUP, layer.activation);
                      }};
    std::vector<Phase> phases;
    if (layer.has_projection) {
        phases.push_back(rows_phase(level, source, first));
        phases.push_back(product_phase(level, layer.projection, first, projected));
    }
    phases.push_back(rows_phase(level, middle_source, normed));
    phases.push_back(gated);
    phases.push_back(product_phase(level, layer.down, inner, result));
    run_phases(phases.data(), phases.size(), level.finish);
}

namespace {

constexpr size_t SUMMED_AT_ONCE = 256;  // outputs of a part of the last phase

// An expert that rows have chosen, and its rows: a row for each choice, in the order of the choices.
struct ChosenExpert {
    size_t expert, first, count;  // `first`: its first row among the rows of all experts
};

// The choices of all rows, sorted by expert.
struct SortedChoices {
    std::vector<ChosenExpert> experts;
    std::vector<uint32_t> expert_of;  // [choice]: a number of `experts`
    std::vector<uint32_t> place_of;   // [choice]: the row among the rows of all experts

    SortedChoices(const Choices& choices, size_t num_choices, size_t num_experts) : expert_of(num_choices), place_of(num_choices) {
        std::vector<size_t> counts(num_experts), next(num_experts), number(num_experts);
        for (size_t i = 0; i < num_choices; i++) {
            const int32_t expert = choices.experts[i];
            if (expert < 0 || size_t(expert) >= num_experts) throw std::out_of_range("there is no such expert");
            counts[size_t(expert)]++;
        }
        size_t first = 0;
        for (size_t expert = 0; expert < num_experts; first += counts[expert++]) {
            next[expert] = first, number[expert] = experts.size();
            if (counts[expert]) experts.push_back({expert, first, counts[expert]});
        }
        for (size_t i = 0; i < num_choices; i++) {
            const size_t expert = size_t(choices.experts[i]);
            expert_of[i] = uint32_t(number[expert]), place_of[i] = uint32_t(next[expert]++);
        }
    }
};

// Rows of experts, which stay allocated from call to call.
struct RowsOfExperts {
    std::vector<std::unique_ptr<Rows>> inputs, inner;
    Buffer<float> results;  // [choice, by place][outputs]

    void prepare(const Level& level, const Experts& experts, const SortedChoices& sorted) {
        while (inputs.size() < sorted.experts.size()) inputs.push_back(std::make_unique<Rows>()), inner.push_back(std::make_unique<Rows>());
        for (size_t i = 0; i < sorted.experts.size(); i++) {
            ouzel::prepare(*inputs[i], level, sorted.experts[i].count, experts.gate_up.matrix.layout, experts.may_be_wide);
            ouzel::prepare(*inner[i], level, sorted.experts[i].count, experts.down.matrix.layout, experts.may_be_wide);
        }
    }
};

// Computes 64 inner numbers of all rows of an expert.
void put_gated_rows(const Level& level, const Experts& experts, const ChosenExpert& chosen, size_t group, const Rows& rows, Rows& inner) {
    static thread_local Buffer<float> gates_of_thread, ups_of_thread;
    float* gates = gates_of_thread.reserve(chosen.count * GROUP);
    float* ups = ups_of_thread.reserve(chosen.count * GROUP);
    const size_t blocks = experts.inner() / BLOCK, gate_block = chosen.expert * 2 * blocks + group * 2, up_block = gate_block + blocks;
    const size_t num_blocks = std::min<size_t>(2, blocks - group * 2);
    if (num_blocks < 2) std::fill_n(gates, chosen.count * GROUP, 0.f), std::fill_n(ups, chosen.count * GROUP, 0.f);
    GroupWriter gate_writer(experts.gate_up, gate_block, gates), up_writer(experts.gate_up, up_block, ups);
    level.multiply(experts.gate_up.matrix, gate_block, num_blocks, rows, gate_writer);
    level.multiply(experts.gate_up.matrix, up_block, num_blocks, rows, up_writer);
    for (size_t row = 0; row < chosen.count; row++)
        level.put_gated_group(inner, row, group, gates + row * GROUP, ups + row * GROUP, experts.activation);
}

}  // namespace

void mix_experts(const Level& level, const Experts& experts, const Choices& choices, const float* rows, const float* residual, size_t count,
                 float* to) {
    if (!count) return;
    static thread_local RowsOfExperts rows_of_thread;
    RowsOfExperts& memory = rows_of_thread;
    const size_t num_choices = count * choices.chosen, hidden = experts.gate_up.matrix.layout.inputs, outputs = experts.outputs();
    const SortedChoices sorted(choices, num_choices, experts.count);
    memory.prepare(level, experts, sorted);
    float* results = memory.results.reserve(num_choices * outputs);
    const size_t num_experts = sorted.experts.size(), groups = experts.down.matrix.layout.groups(), blocks = outputs / BLOCK;
    const Parts choice_parts(num_choices, parts_for_threads());
    const Parts down_parts(blocks, std::max<size_t>(1, (4 * parts_for_threads() + num_experts - 1) / num_experts));
    const size_t sum_parts = (outputs + SUMMED_AT_ONCE - 1) / SUMMED_AT_ONCE;
    const Phase phases[] = {
        {choice_parts.count,
         [&](size_t part) {
             for (size_t i = choice_parts.begin(part); i < choice_parts.begin(part + 1); i++) {
                 const size_t expert = sorted.expert_of[i];
                 level.put_row(*memory.inputs[expert], sorted.place_of[i] - sorted.experts[expert].first, rows + i / choices.chosen * hidden);
             }
         }},
        {num_experts * groups,
         [&](size_t part) {
             const size_t expert = part / groups;
             put_gated_rows(level, experts, sorted.experts[expert], part % groups, *memory.inputs[expert], *memory.inner[expert]);
         }},
        {num_experts * down_parts.count,
         [&](size_t number) {
             const ChosenExpert& chosen = sorted.experts[number / down_parts.count];
             const size_t part = number % down_parts.count;
             Writer writer(experts.down, chosen.expert * outputs, outputs, results + chosen.first * outputs, nullptr);
             level.multiply(experts.down.matrix, chosen.expert * blocks + down_parts.begin(part), down_parts.size(part),
                            *memory.inner[number / down_parts.count], writer);
         }},
        {count * sum_parts,
         [&](size_t part) {
             const size_t row = part / sum_parts, begin = part % sum_parts * SUMMED_AT_ONCE, end = std::min(begin + SUMMED_AT_ONCE, outputs);
             float* sums = to + row * outputs;
             if (residual)
                 std::copy(residual + row * outputs + begin, residual + row * outputs + end, sums + begin);
             else
                 std::fill(sums + begin, sums + end, 0.f);
             for (size_t i = row * choices.chosen; i < (row + 1) * choices.chosen; i++) {
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
