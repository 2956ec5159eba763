// Checks products, the feed-forward half of a layer, mixtures of experts and the attention on each level that this processor supports, without OpenVINO.
//
//   check [--threads N] [--level NAME] [--small]
//
// Products are compared with a plain loop in double precision over the same rounded rows, and bit for bit with a loop that adds
// in the order of the kernels. Fused products are compared bit for bit with those of each row alone on the level AVX2. All
// arrays have exactly the lengths that product.h names, so that AddressSanitizer and Valgrind see an access after their ends.
// check_attention.cpp checks the attention. --small takes few shapes and rows. Prints a line for each level; exits with 1 after a
// fault, and with 2 for wrong arguments.
#include <immintrin.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "check_attention.h"
#include "phases.h"
#include "processor.h"
#include "product.h"
#include "tbb/global_control.h"
#include "tbb/task_arena.h"

namespace ouzel {
namespace {

constexpr double BF16_ERROR = 0.01;          // of a product, relative to its norm
constexpr double NORMED_BF16_ERROR = 0.02;   // with norms of products: small products, which have large errors, become as large as others
constexpr double MIXED_ERROR = 0.03;         // of experts with rows in bf16 and in int8
constexpr double FEED_FORWARD_ERROR = 2e-3;  // a number near the middle of two int8 may be rounded to either of them
constexpr double ACTIVATION_ERROR = 1e-5;    // of an activation, relative to it
constexpr float EPSILON = 1e-6f;
constexpr Gate SILU = {1, 0}, GELU = {1.5957691216057308f, 0.0713548162726009f};

struct Kind {
    int bits, scales;
    bool has_offsets;
    int table = NO_TABLE;
};
constexpr Kind KINDS[] = {
    {4, 1, false}, {4, 1, true}, {4, 2, false}, {4, 2, true}, {4, 4, false}, {4, 4, true}, {6, 2, false},
    {6, 2, true},  {6, 4, false}, {6, 4, true},  {8, 1, false}, {8, 1, true}, {8, 2, false},  {8, 2, true},
    {4, 2, false, IQ4_TABLE}, {4, 2, false, E2M1_TABLE}, {4, 4, true, E2M1_TABLE},
};

// A matrix with random values, scales and factors.
struct TestMatrix {
    Layout layout;
    std::vector<uint8_t> memory;  // of the cells, which begin at an odd address
    Floats factors, bias;
    std::vector<int> values;    // [outputs][inputs], less the middle
    Floats scales, offsets;     // [outputs][inputs], without the factors
    Floats weights;     // [outputs][inputs]
    Floats magnitudes;  // [outputs][inputs]: the absolute value and the absolute offset of each weight, added

    // With `is_extreme` all values of an output are the smallest, or all are the largest.
    TestMatrix(Shape shape, Kind kind, Random& random, bool is_extreme = false)
        : layout{shape.outputs, shape.inputs, kind.bits, kind.scales, kind.has_offsets, kind.table},
          memory(layout.bytes() + 1),
          factors(shape.outputs),
          bias(random.numbers(shape.outputs)),
          values(shape.outputs * shape.inputs),
          scales(values.size()),
          offsets(values.size()),
          weights(values.size()),
          magnitudes(values.size()) {
        for (float& factor : factors) factor = std::ldexp(1.f, int(random.below(7)) - 3);
        for (size_t output = 0; output < layout.blocks() * BLOCK; output++)
            for (size_t input = 0; input < layout.groups() * GROUP; input++)
                put(output, input, is_extreme ? output % 2 * ((1u << layout.bits) - 1) : draw(random), random);
    }

    const uint8_t* cells() const { return memory.data() + 1; }
    Product product(bool has_bias = true) const { return {{layout, cells()}, factors.data(), has_bias ? bias.data() : nullptr}; }

private:
    // Writes a value, and a scale and an offset before the first value that has them. Values after the last output or input are 0.
    void put(size_t output, size_t input, unsigned drawn, Random& random) {
        const bool is_inside = output < layout.outputs && input < layout.inputs;
        const size_t s = input % GROUP * size_t(layout.scales) / GROUP, lane = output % BLOCK;
        uint8_t* cell = memory.data() + 1 + output / BLOCK * layout.block_bytes() + input / GROUP * layout.cell_bytes();
        uint8_t* scale = cell + s * BLOCK * 2 + lane * 2;
        uint8_t* offset = cell + (size_t(layout.scales) + s) * BLOCK * 2 + lane * 2;
        if (is_inside && input % (GROUP / size_t(layout.scales)) == 0) {
            put_half(scale, random.below(8) ? random.between(-1, 1) : random.between(-6e-5f, 6e-5f));  // the latter are denormal
            if (layout.has_offsets) put_half(offset, random.between(-8, 8));
        }
        const unsigned middle = 1u << (layout.bits - 1), value = is_inside ? drawn : middle;
        put_value(cell + layout.header_bytes() + lane / 16 * layout.tile_bytes() + lane % 16 * 4 + input % 4, input % GROUP / 4, value);
        if (!is_inside) return;
        const size_t at = output * layout.inputs + input;
        values[at] = layout.table ? TABLES[layout.table][value] - 128 : int(value) - int(middle), scales[at] = half(scale), offsets[at] = layout.has_offsets ? half(offset) : 0.f;
        const float number = float(values[at]);
        weights[at] = std::fma(number, scales[at], offsets[at]) * factors[output];
        magnitudes[at] = (std::fabs(number * scales[at]) + std::fabs(offsets[at])) * factors[output];
    }
    // A value, often the smallest or the largest one.
    unsigned draw(Random& random) const {
        const unsigned largest = (1u << layout.bits) - 1;
        return random.below(4) ? random.below(largest + 1) : random.below(2) * largest;
    }
    // Writes the value of an operand. `to` is the place of the value in the first vector of the tile.
    void put_value(uint8_t* to, size_t operand, unsigned value) const {
        const auto add = [](uint8_t& byte, unsigned more) { byte = uint8_t(byte | more); };
        if (layout.bits == 8) return add(to[operand * 64], value);
        add(to[operand / 2 * 64], (value & 15) << operand % 2 * 4);
        if (layout.bits == 6) add(to[512 + operand / 4 * 64], value >> 4 << operand % 4 * 2);
    }
    static float half(const uint8_t* from) {
        uint16_t bits;
        std::memcpy(&bits, from, 2);
        return _cvtsh_ss(bits);
    }
    static void put_half(uint8_t* to, float value) {
        const uint16_t bits = uint16_t(_cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT));
        std::memcpy(to, &bits, 2);
    }
};

// Rows as the kernels round them: int8 with a scale for each group of 64 / scales numbers.
struct RoundedRows {
    size_t inputs, group_size, groups;
    std::vector<int> values;  // [count][inputs]
    Floats scales;            // [count][groups]

    RoundedRows(const Floats& rows, size_t inputs_, int scales_of_cell)
        : inputs(inputs_), group_size(GROUP / size_t(scales_of_cell)), groups((inputs + group_size - 1) / group_size), values(rows.size()) {
        for (size_t first = 0; first < rows.size(); first += inputs)
            for (size_t begin = first; begin < first + inputs; begin += group_size) {
                const size_t end = std::min(begin + group_size, first + inputs);
                float largest = 0;
                for (size_t i = begin; i < end; i++) largest = std::max(largest, std::fabs(rows[i]));
                scales.push_back(largest < 1e-30f ? 0 : largest / 127.f);
                for (size_t i = begin; i < end && largest >= 1e-30f; i++) values[i] = int(std::nearbyint(rows[i] * (127.f / largest)));
            }
    }
    size_t count() const { return values.size() / inputs; }
    float scale(size_t row, size_t group) const { return scales[row * groups + group]; }
};

Doubles round_rows(const Floats& rows, size_t inputs, int scales) {
    const RoundedRows rounded(rows, inputs, scales);
    Doubles found(rows.size());
    for (size_t i = 0; i < rows.size(); i++)
        found[i] = double(rounded.values[i]) * double(rounded.scale(i / inputs, i % inputs / rounded.group_size));
    return found;
}

// Products with the bits of the kernels: a loop that adds in their order.
Floats multiply_in_order(const RoundedRows& rows, const TestMatrix& matrix) {
    Floats found;
    for (size_t row = 0; row < rows.count(); row++)
        for (size_t output = 0; output < matrix.layout.outputs; output++) {
            float sum = 0;
            for (size_t group = 0; group < rows.groups; group++) {
                const size_t begin = group * rows.group_size, end = std::min(begin + rows.group_size, rows.inputs);
                const size_t weights = output * rows.inputs;
                int product = 0, total = 0;
                for (size_t i = begin; i < end; i++) {
                    const int value = rows.values[row * rows.inputs + i];
                    product += value * matrix.values[weights + i], total += value;
                }
                const float scale = rows.scale(row, group);
                sum = std::fma(float(product) * scale, matrix.scales[weights + begin], sum);
                if (matrix.layout.has_offsets) sum = std::fma(float(total) * scale, matrix.offsets[weights + begin], sum);
            }
            found.push_back(std::fma(sum, matrix.factors[output], matrix.bias[output]));
        }
    return found;
}

Doubles widen(const Floats& numbers) { return Doubles(numbers.begin(), numbers.end()); }
Floats narrow(const Doubles& numbers) { return Floats(numbers.begin(), numbers.end()); }

// rows [count][inputs] times the transpose of `weights` [outputs][inputs].
Doubles multiply_plain(const Doubles& rows, const Floats& weights, size_t inputs) {
    const size_t outputs = weights.size() / inputs, count = rows.size() / inputs;
    Doubles found(count * outputs);
    for (size_t row = 0; row < count; row++)
        for (size_t output = 0; output < outputs; output++) {
            double sum = 0;
            for (size_t i = 0; i < inputs; i++) sum += rows[row * inputs + i] * double(weights[output * inputs + i]);
            found[row * outputs + output] = sum;
        }
    return found;
}

Doubles multiply_plain(const Doubles& rows, const TestMatrix& matrix, bool has_bias = true) {
    Doubles found = multiply_plain(rows, matrix.weights, matrix.layout.inputs);
    for (size_t i = 0; has_bias && i < found.size(); i++) found[i] += double(matrix.bias[i % matrix.layout.outputs]);
    return found;
}

// The distance of two arrays, relative to the norm of the second one.
double relative_error(const Floats& found, const Doubles& exact, size_t count) {
    double distance = 0, norm = 0;
    for (size_t i = 0; i < count; i++) {
        const double difference = double(found[i]) - exact[i];
        distance += difference * difference, norm += exact[i] * exact[i];
    }
    return std::sqrt(distance / std::max(norm, 1e-300));
}

Doubles normalise(Doubles rows, const Floats& weight) {
    const size_t columns = weight.size();
    for (size_t first = 0; first < rows.size(); first += columns) {
        double squares = 0;
        for (size_t i = first; i < first + columns; i++) squares += rows[i] * rows[i];
        const double factor = 1 / std::sqrt(squares / double(columns) + double(EPSILON));
        for (size_t i = 0; i < columns; i++) rows[first + i] *= factor * double(weight[i]);
    }
    return rows;
}

Floats normalise(const Floats& rows, const Floats& weight) { return narrow(normalise(widen(rows), weight)); }

std::string describe(const TestMatrix& matrix, size_t count) {
    const Layout& layout = matrix.layout;
    return std::to_string(count) + " rows by " + std::to_string(layout.outputs) + " x " + std::to_string(layout.inputs) + ", " +
           std::to_string(layout.bits) + " bits, " + std::to_string(layout.scales) + " scales" + (layout.has_offsets ? ", offsets" : "") +
           (layout.table ? ", table " + std::to_string(layout.table) : "");
}

Floats multiply_rows(const Level& level, const TestMatrix& matrix, const Floats& rows, bool may_be_wide = false, bool has_bias = true) {
    const size_t count = rows.size() / matrix.layout.inputs;
    Floats to(count * matrix.layout.outputs, std::numeric_limits<float>::quiet_NaN());
    multiply(level, {rows.data(), count}, {matrix.product(has_bias)}, {to.data()}, {}, may_be_wide);
    return to;
}

// Calls `compute` for each row, and joins what it returns.
template <class Compute>
Floats one_by_one(size_t count, Compute&& compute) {
    Floats found;
    for (size_t row = 0; row < count; row++) {
        const Floats one = compute(row);
        found.insert(found.end(), one.begin(), one.end());
    }
    return found;
}

void check_weights(const TestMatrix& matrix, Report& report) {
    const size_t inputs = matrix.layout.inputs;
    for (size_t output = 0; output < matrix.layout.outputs; output++) {
        Floats decoded(inputs);
        decode_output({matrix.layout, matrix.cells()}, matrix.factors.data(), output, decoded.data());
        report.expect(has_same_bits(decoded, slice(matrix.weights, output, 1, inputs)),
                      "decode_output gives other weights: " + describe(matrix, 0) + ", output " + std::to_string(output));
    }
}

void check_products(const Level& level, const TestMatrix& matrix, const Options& options, Random& random, Report& report) {
    const size_t inputs = matrix.layout.inputs, outputs = matrix.layout.outputs, most = options.counts().back();
    const Floats rows = random.numbers(most * inputs);
    const Doubles rounded = round_rows(rows, inputs, matrix.layout.scales);
    const Doubles exact = multiply_plain(rounded, matrix), unrounded = multiply_plain(widen(rows), matrix);
    Doubles absolute = rounded;
    for (double& each : absolute) each = std::fabs(each);
    const Doubles magnitudes = multiply_plain(absolute, matrix.magnitudes, inputs);
    const Floats in_order = multiply_in_order(RoundedRows(rows, inputs, matrix.layout.scales), matrix);
    for (size_t count : options.counts()) {
        const Floats found = multiply_rows(level, matrix, slice(rows, 0, count, inputs));
        report.expect(is_near(found, exact, magnitudes), "the products are not those of the plain loop: " + describe(matrix, count));
        for (size_t first : {size_t(0), most - count})
            report.expect(has_same_bits(multiply_rows(level, matrix, slice(rows, first, count, inputs)), slice(in_order, first, count, outputs)),
                          "the bits of a row are not those of a loop in order: " + describe(matrix, count));
        const Floats wide = multiply_rows(level, matrix, slice(rows, 0, count, inputs), true);
        if (level.wide_from && count >= level.wide_from)
            report.expect(relative_error(wide, unrounded, wide.size()) < BF16_ERROR, "bf16 is inexact: " + describe(matrix, count));
        else
            report.expect(has_same_bits(wide, found), "few rows are not quantised: " + describe(matrix, count));
    }
}

// The largest products there are: 16 bits must not be too few for their sums.
void check_largest_sums(const Level& level, Kind kind, Random& random, Report& report) {
    const TestMatrix matrix({40, 320}, kind, random, true);
    for (float second : {1.f, -1.f}) {
        Floats rows(3 * 320);
        for (size_t i = 0; i < rows.size(); i++) rows[i] = i % 2 ? second : 1.f;
        report.expect(has_same_bits(multiply_rows(level, matrix, rows), multiply_in_order(RoundedRows(rows, 320, kind.scales), matrix)),
                      "the largest products have other bits than in a loop: " + describe(matrix, 3));
    }
}

// A number that is not finite makes the products of its row NaN (in bf16: not finite), and changes no other row.
void check_not_finite(const Level& level, const TestMatrix& matrix, const Options& options, Random& random, Report& report) {
    const size_t inputs = matrix.layout.inputs, outputs = matrix.layout.outputs;
    const float infinity = std::numeric_limits<float>::infinity();
    for (size_t count : options.few_counts())
        for (float bad : {std::numeric_limits<float>::quiet_NaN(), infinity, -infinity})
            for (bool may_be_wide : {false, true}) {
                const bool is_wide = may_be_wide && level.wide_from && count >= level.wide_from;
                Floats rows = random.numbers(count * inputs);
                const Floats sound = multiply_rows(level, matrix, rows, may_be_wide);
                const size_t spoilt = count / 2;
                rows[spoilt * inputs + random.below(unsigned(inputs))] = bad;
                const Floats found = multiply_rows(level, matrix, rows, may_be_wide);
                bool is_spoilt = true, is_sound = true;
                for (size_t i = 0; i < found.size(); i++) {
                    if (i / outputs == spoilt)
                        is_spoilt &= is_wide ? !std::isfinite(found[i]) : std::isnan(found[i]);
                    else
                        is_sound &= found[i] == sound[i];
                }
                const std::string what = std::to_string(bad) + (is_wide ? " in bf16: " : ": ") + describe(matrix, count);
                report.expect(is_spoilt, "the row has finite products with " + what);
                report.expect(is_sound, "other rows change with " + what);
            }
}

// Rows of zeros and of very small numbers give zeros; other rows have the error of int8.
void check_sizes(const Level& level, const TestMatrix& matrix, const Options& options, Random& random, Report& report) {
    const size_t inputs = matrix.layout.inputs;
    for (size_t count : options.few_counts())
        for (float size : {0.f, -0.f, 1e-45f, 1e-40f, 1e-38f, 4e-31f, 1e-25f, 1e30f}) {
            Floats rows = random.numbers(count * inputs);
            for (float& each : rows) each *= size;
            const Floats found = multiply_rows(level, matrix, rows, false, false);
            const std::string what = "rows of the size " + std::to_string(std::log10(std::fabs(size))) + ": " + describe(matrix, count);
            if (std::fabs(size) < 1e-30f) {
                bool is_zero = true;
                for (float each : found) is_zero &= each == 0;
                report.expect(is_zero, what);
            } else {
                const Doubles exact = multiply_plain(round_rows(rows, inputs, matrix.layout.scales), matrix, false);
                report.expect(relative_error(found, exact, found.size()) < 1e-5, what);
            }
        }
}

// What becomes of the products of a source, beside the residual.
struct Kept {
    size_t turned;  // numbers of a head
    bool norms_heads, norms_rows;
    const char* name;
};
constexpr Kept KEPT[] = {
    {0, false, false, ""},         {64, false, false, ", turned"},
    {0, true, false, ", heads normalised"}, {64, true, false, ", heads normalised and turned"},
    {0, false, true, ", normalised"}, {20, false, true, ", normalised and partly turned"},
};

// Three products of one source, with a norm, and a residual for the first one; the first two may be normalised and turned. The
// matrices are of several kinds.
struct TestSource {
    static constexpr size_t INPUTS = 70, COUNT = 3, HEAD = 64;
    static constexpr size_t OUTPUTS[COUNT] = {128, 64, 5};
    static constexpr size_t NUM_KEPT = 2;  // products that may be normalised and turned
    Kept kept;
    std::vector<TestMatrix> matrices;
    Floats rows, residual, norm_weight, cosines, sines;
    std::vector<Floats> head_weights, row_weights;

    TestSource(size_t count, Kept what, size_t first_kind, Random& random)
        : kept(what),
          rows(random.numbers(count * INPUTS)),
          residual(random.numbers(count * OUTPUTS[0])),
          norm_weight(random.numbers(INPUTS)),
          cosines(count * what.turned / 2),
          sines(cosines.size()) {
        for (size_t i = 0; i < COUNT; i++) matrices.emplace_back(Shape{OUTPUTS[i], INPUTS}, KINDS[(first_kind + 3 * i) % std::size(KINDS)], random);
        for (size_t i = 0; i < NUM_KEPT; i++) head_weights.push_back(random.numbers(HEAD)), row_weights.push_back(random.numbers(OUTPUTS[i]));
        for (size_t i = 0; i < cosines.size(); i++) {
            const float angle = random.between(-4, 4);
            cosines[i] = std::cos(angle), sines[i] = std::sin(angle);
        }
    }

    static bool has_bias(size_t number) { return number != 1; }

    // The products of some rows.
    std::vector<Floats> compute(const Level& level, size_t first, size_t count, bool may_be_wide = false) const {
        const Floats some = slice(rows, first, count, INPUTS), added = slice(residual, first, count, OUTPUTS[0]);
        const Floats cos = slice(cosines, first, count, kept.turned / 2), sin = slice(sines, first, count, kept.turned / 2);
        std::vector<Product> products;
        std::vector<Floats> found;
        std::vector<float*> to;
        for (size_t i = 0; i < COUNT; i++) {
            products.push_back(matrices[i].product(has_bias(i)));
            found.emplace_back(count * OUTPUTS[i], std::numeric_limits<float>::quiet_NaN());
            to.push_back(found.back().data());
        }
        Results made{added.data()};
        if (kept.turned || kept.norms_heads) {
            made.heads = {HEAD, kept.turned, cos.data(), sin.data(), {}, EPSILON};
            for (const Floats& weight : head_weights) made.heads.norm_weights.push_back(kept.norms_heads ? weight.data() : nullptr);
        }
        for (size_t i = 0; kept.norms_rows && i < NUM_KEPT; i++) made.norms.push_back({row_weights[i].data(), EPSILON});
        multiply(level, {some.data(), count, {norm_weight.data(), EPSILON}}, products, to, made, may_be_wide);
        return found;
    }

    Doubles compute_plain(size_t number, bool rounds) const {
        const TestMatrix& matrix = matrices[number];
        const Floats normed = normalise(rows, norm_weight);
        Doubles found = multiply_plain(rounds ? round_rows(normed, INPUTS, matrix.layout.scales) : widen(normed), matrix, has_bias(number));
        if (kept.norms_rows && number < NUM_KEPT) found = normalise(found, row_weights[number]);
        for (size_t i = 0; !number && i < found.size(); i++) found[i] += double(residual[i]);
        if (number < NUM_KEPT)
            for (size_t head = 0; head < found.size() / HEAD; head++)
                turn(found.data() + head * HEAD, number, head * HEAD / OUTPUTS[number] * kept.turned / 2);
        return found;
    }

private:
    void turn(double* head, size_t number, size_t first_angle) const {
        double squares = 0;
        for (size_t i = 0; i < HEAD; i++) squares += head[i] * head[i];
        const double factor = 1 / std::sqrt(squares / double(HEAD) + double(EPSILON));
        for (size_t i = 0; kept.norms_heads && i < HEAD; i++) head[i] *= factor * double(head_weights[number][i]);
        const size_t half = kept.turned / 2;
        for (size_t i = 0; i < half; i++) {
            const double a = head[i], b = head[half + i], cos = double(cosines[first_angle + i]), sin = double(sines[first_angle + i]);
            head[i] = a * cos - b * sin, head[half + i] = b * cos + a * sin;
        }
    }
};

void check_sources(const Level& level, size_t first_kind, const Options& options, Random& random, Report& report) {
    const size_t most = options.few_counts().back();
    for (const Kept& kept : KEPT) {
        const TestSource source(most, kept, first_kind, random);
        std::vector<Floats> alone(TestSource::COUNT);
        std::vector<Doubles> exact, unrounded;
        for (size_t i = 0; i < TestSource::COUNT; i++) exact.push_back(source.compute_plain(i, true)), unrounded.push_back(source.compute_plain(i, false));
        for (size_t row = 0; row < most; row++) {
            const std::vector<Floats> one = source.compute(AVX2, row, 1);
            for (size_t i = 0; i < one.size(); i++) alone[i].insert(alone[i].end(), one[i].begin(), one[i].end());
        }
        for (size_t count : options.few_counts()) {
            const std::vector<Floats> found = source.compute(level, 0, count), wide = source.compute(level, 0, count, true);
            const bool is_wide = level.wide_from && count >= level.wide_from;
            for (size_t i = 0; i < found.size(); i++) {
                const std::string what =
                    "product " + std::to_string(i) + " of normed rows" + kept.name + ": " + describe(source.matrices[i], count);
                report.expect(relative_error(found[i], exact[i], found[i].size()) < FEED_FORWARD_ERROR, what + " is inexact");
                report.expect(has_same_bits(found[i], slice(alone[i], 0, count, TestSource::OUTPUTS[i])), what + " has other bits");
                report.expect(is_wide ? relative_error(wide[i], unrounded[i], wide[i].size()) < BF16_ERROR : has_same_bits(wide[i], found[i]),
                              what + " is inexact in bf16, or few rows are not quantised");
            }
        }
    }
}

double activate(Gate activation, double x) {
    return x / (1 + std::exp(-x * (double(activation.linear) + double(activation.cubic) * x * x)));
}

// Activations of numbers of all sizes, each against a double.
void check_activations(const Level& level, const TestMatrix& matrix, Random& random, Report& report) {
    for (Gate activation : {SILU, GELU})
        for (float size : {1e-20f, 0.01f, 1.f, 10.f, 100.f, 1e10f}) {
            Floats gates(GROUP), ups = random.numbers(GROUP);
            for (float& each : gates) each = random.between(-size, size);
            const Floats before = gates;
            Floats others = gates;
            Rows rows, other_rows;
            rows.resize(1, matrix.layout, level.chunk(1), false), other_rows.resize(1, matrix.layout, AVX2.chunk(1), false);
            level.put_gated_group(rows, 0, 0, gates.data(), ups.data(), activation);
            AVX2.put_gated_group(other_rows, 0, 0, others.data(), ups.data(), activation);
            bool is_right = true;
            for (size_t i = 0; i < GROUP; i++) {
                const double exact = activate(activation, double(before[i])) * double(ups[i]);
                is_right &= std::fabs(double(gates[i]) - exact) <= ACTIVATION_ERROR * std::fabs(exact) + 1e-25;
            }
            const std::string what = "activations of numbers up to " + std::to_string(size);
            report.expect(is_right, what + " are inexact");
            report.expect(has_same_bits(gates, others), what + " have other bits");
        }
}

// The norms of a feed-forward half: after the projection, before gate and up, after down.
struct LayerNorms {
    bool after_projection, before, after;
    const char* name;
};
constexpr LayerNorms LAYER_NORMS[] = {
    {false, true, false, "a norm before"}, {true, true, true, "norms around"}, {true, false, true, "norms after"}, {false, false, false, "no norms"},
};

// The feed-forward half of a layer with random matrices.
struct TestLayer {
    static constexpr size_t HIDDEN = 70, PROJECTED = 40;
    LayerNorms norms;
    bool has_projection;
    Gate activation;
    TestMatrix projection, gate, up, down;
    Floats projected_weight, norm_weight, result_weight;

    TestLayer(size_t inner, bool projects, LayerNorms which, Gate function, Kind kind, Kind down_kind, Random& random)
        : norms(which),
          has_projection(projects),
          activation(function),
          projection({HIDDEN, PROJECTED}, kind, random),
          gate({inner, HIDDEN}, kind, random),
          up({inner, HIDDEN}, kind, random),
          down({HIDDEN, inner}, down_kind, random),
          projected_weight(random.numbers(HIDDEN)),
          norm_weight(random.numbers(HIDDEN)),
          result_weight(random.numbers(HIDDEN)) {}

    size_t inputs() const { return has_projection ? PROJECTED : HIDDEN; }

    Floats compute(const Level& level, const Floats& rows, const Floats& residual, bool may_be_wide = false) const {
        const size_t count = rows.size() / inputs();
        Floats to(count * HIDDEN, std::numeric_limits<float>::quiet_NaN());
        const FeedForward layer{has_projection, projection.product(false), gate.product(), up.product(false), down.product(),
                                norm(norms.after_projection && has_projection, projected_weight), norm(norms.before, norm_weight),
                                norm(norms.after, result_weight), activation, may_be_wide};
        feed_forward(level, layer, rows.data(), has_projection ? residual.data() : nullptr, count, to.data());
        return to;
    }

    Doubles compute_plain(const Floats& rows, const Floats& residual, bool rounds) const {
        const auto take = [&](const Floats& numbers, const TestMatrix& matrix) {
            return rounds ? round_rows(numbers, matrix.layout.inputs, matrix.layout.scales) : widen(numbers);
        };
        Doubles x = widen(has_projection ? residual : rows);
        if (has_projection) {
            const Doubles projected = multiply_plain(take(rows, projection), projection, false);
            add(x, norms.after_projection ? normalise(projected, projected_weight) : projected);
        }
        const Floats normed = norms.before ? normalise(narrow(x), norm_weight) : narrow(x);
        Doubles gates = multiply_plain(take(normed, gate), gate);
        const Doubles ups = multiply_plain(take(normed, up), up, false);
        for (size_t i = 0; i < gates.size(); i++) gates[i] = activate(activation, gates[i]) * ups[i];
        const Doubles result = multiply_plain(take(narrow(gates), down), down);
        add(x, norms.after ? normalise(result, result_weight) : result);
        return x;
    }

private:
    static RowNorm norm(bool is_there, const Floats& weight) { return is_there ? RowNorm{weight.data(), EPSILON} : RowNorm{}; }
    static void add(Doubles& to, const Doubles& numbers) {
        for (size_t i = 0; i < to.size(); i++) to[i] += numbers[i];
    }
};

void check_layer(const Level& level, const TestLayer& layer, const std::string& name, const Options& options, Random& random, Report& report) {
    const size_t most = options.few_counts().back(), inputs = layer.inputs(), hidden = TestLayer::HIDDEN;
    const Floats rows = random.numbers(most * inputs), residual = random.numbers(most * hidden);
    const auto some = [&](const Level& on, size_t first, size_t count, bool may_be_wide) {
        return layer.compute(on, slice(rows, first, count, inputs), slice(residual, first, count, hidden), may_be_wide);
    };
    const Doubles exact = layer.compute_plain(rows, residual, true), unrounded = layer.compute_plain(rows, residual, false);
    const Floats alone = one_by_one(most, [&](size_t row) { return some(AVX2, row, 1, false); });
    const double wide_error = layer.norms.after ? NORMED_BF16_ERROR : BF16_ERROR;
    for (size_t count : options.few_counts()) {
        const std::string what = name + " of " + std::to_string(count) + " rows: ";
        const Floats found = some(level, 0, count, false);
        const double error = relative_error(found, exact, found.size());
        report.expect(error < FEED_FORWARD_ERROR, what + "the error is " + std::to_string(error));
        report.expect(has_same_bits(found, slice(alone, 0, count, hidden)), what + "the bits depend on the level or on other rows");
        const Floats wide = some(level, 0, count, true);
        if (level.wide_from && count >= level.wide_from)
            report.expect(relative_error(wide, unrounded, wide.size()) < wide_error, what + "bf16 is inexact");
        else
            report.expect(has_same_bits(wide, found), what + "few rows are not quantised");
        Floats spoilt = slice(rows, 0, count, inputs);
        spoilt[count / 2 * inputs + random.below(unsigned(inputs))] = std::numeric_limits<float>::quiet_NaN();
        const Floats others = layer.compute(level, spoilt, slice(residual, 0, count, hidden));
        bool is_right = true;
        for (size_t i = 0; i < found.size(); i++) is_right &= i / hidden == count / 2 ? std::isnan(others[i]) : others[i] == found[i];
        report.expect(is_right, what + "a NaN does not spoil its row, or spoils others");
    }
}

void check_layers(const Level& level, size_t first_kind, const Options& options, Random& random, Report& report) {
    const Kind kind = KINDS[first_kind], down_kind = KINDS[(first_kind + 5) % std::size(KINDS)];
    size_t number = first_kind;
    for (size_t inner : options.inner_sizes())
        for (bool has_projection : {false, true}) {
            const LayerNorms& norms = LAYER_NORMS[number++ % std::size(LAYER_NORMS)];
            const TestLayer layer(inner, has_projection, norms, kind.has_offsets ? GELU : SILU, kind, down_kind, random);
            const std::string name = "a feed-forward half of " + std::to_string(inner) + (has_projection ? ", with projection, " : ", ") +
                                     norms.name + ", " + std::to_string(kind.bits) + " bits, " + std::to_string(kind.scales) + " scales" +
                                     (kind.has_offsets ? ", offsets" : "");
            check_layer(level, layer, name, options, random, report);
        }
}

// A mixture of experts with random matrices. The first row chooses expert 1 twice, few rows choose expert 0, and none the last one. With
// `is_cut` gates and ups are cut to the mean of their magnitudes.
struct TestExperts {
    static constexpr size_t COUNT = 3, CHOSEN = 3, HIDDEN = 288;
    size_t inner;
    Gate activation;
    TestMatrix gate_up, down;
    Floats rows, residual, weights;
    std::vector<int32_t> chosen;

    TestExperts(size_t count, size_t inner_size, bool is_cut, Kind kind, Kind down_kind, Random& random)
        : inner(inner_size),
          activation(SILU),
          gate_up({COUNT * 2 * inner, HIDDEN}, kind, random),
          down({COUNT * HIDDEN, inner}, down_kind, random),
          rows(random.numbers(count * HIDDEN)),
          residual(random.numbers(count * HIDDEN)),
          weights(random.numbers(count * CHOSEN)) {
        for (size_t i = 0; i < count * CHOSEN; i++) chosen.push_back(int32_t(i < 2 ? 1 : random.below(8) > 0));
        if (!is_cut) return;
        const Doubles halves = multiply_plain(widen(rows), gate_up);
        double total = 0;
        for (double each : halves) total += std::fabs(each);
        activation = {1.702f, 0, float(total / double(halves.size())), 1};
    }

    Floats compute(const Level& level, size_t first, size_t count, bool has_residual, bool may_be_wide = false) const {
        const Floats some = slice(rows, first, count, HIDDEN), added = slice(residual, first, count, HIDDEN);
        const Floats shares = slice(weights, first, count, CHOSEN);
        const auto begin = chosen.begin() + std::ptrdiff_t(first * CHOSEN);
        const std::vector<int32_t> numbers(begin, begin + std::ptrdiff_t(count * CHOSEN));
        Floats to(count * HIDDEN, std::numeric_limits<float>::quiet_NaN());
        mix_experts(level, {COUNT, gate_up.product(), down.product(), activation, may_be_wide}, {CHOSEN, numbers.data(), shares.data()},
                    some.data(), has_residual ? added.data() : nullptr, count, to.data());
        return to;
    }

    Doubles compute_plain(bool has_residual, bool rounds) const {
        const auto take = [&](const Floats& numbers, const TestMatrix& matrix) {
            return rounds ? round_rows(numbers, matrix.layout.inputs, matrix.layout.scales) : widen(numbers);
        };
        Doubles found = has_residual ? widen(residual) : Doubles(residual.size());
        const Doubles halves = multiply_plain(take(rows, gate_up), gate_up);
        for (size_t i = 0; i < chosen.size(); i++) {
            const size_t row = i / CHOSEN, expert = size_t(chosen[i]);
            const Doubles result = multiply_plain(take(gated(&halves[(row * COUNT + expert) * 2 * inner]), down), down);
            for (size_t j = 0; j < HIDDEN; j++) found[row * HIDDEN + j] += double(weights[i]) * result[expert * HIDDEN + j];
        }
        return found;
    }

private:
    Floats gated(const double* halves) const {
        const double limit = double(activation.limit);
        Floats found(inner);
        for (size_t j = 0; j < inner; j++) {
            const double up = std::max(std::min(halves[inner + j], limit), -limit);
            found[j] = float(activate(activation, std::min(halves[j], limit)) * (up + double(activation.up_offset)));
        }
        return found;
    }
};

void check_mixture(const Level& level, const TestExperts& experts, bool has_residual, const Options& options, Report& report) {
    const size_t most = options.few_counts().back();
    const Doubles exact = experts.compute_plain(has_residual, true), unrounded = experts.compute_plain(has_residual, false);
    const Floats alone = one_by_one(most, [&](size_t row) { return experts.compute(AVX2, row, 1, has_residual); });
    for (size_t count : options.few_counts()) {
        const std::string what = "experts of " + std::to_string(experts.inner) + ", " + describe(experts.gate_up, count);
        const Floats found = experts.compute(level, 0, count, has_residual);
        report.expect(relative_error(found, exact, found.size()) < FEED_FORWARD_ERROR, what + ": inexact");
        report.expect(has_same_bits(found, slice(alone, 0, count, TestExperts::HIDDEN)), what + ": the bits depend on the level or on other rows");
        const Floats wide = experts.compute(level, 0, count, has_residual, true);
        if (level.wide_from && count * TestExperts::CHOSEN >= level.wide_from)  // the rows of expert 0 are quantised
            report.expect(relative_error(wide, unrounded, wide.size()) < MIXED_ERROR, what + ": rows that may be wide are inexact");
        else
            report.expect(has_same_bits(wide, found), what + ": few rows are not quantised");
    }
    TestExperts spoilt = experts;
    spoilt.rows[TestExperts::HIDDEN + 7] = std::numeric_limits<float>::quiet_NaN();
    const Floats found = spoilt.compute(level, 0, 3, has_residual), sound = experts.compute(level, 0, 3, has_residual);
    bool is_right = true;
    for (size_t i = 0; i < found.size(); i++) is_right &= i / TestExperts::HIDDEN == 1 ? std::isnan(found[i]) : found[i] == sound[i];
    report.expect(is_right, "a NaN does not spoil its row of a mixture, or spoils others");
    report.expect(experts.compute(level, 0, 0, has_residual).empty(), "a mixture of no rows");
}

void check_experts(const Level& level, size_t first_kind, const Options& options, Random& random, Report& report) {
    const Kind kind = KINDS[first_kind], down_kind = KINDS[(first_kind + 4) % std::size(KINDS)];
    for (size_t inner : options.inner_sizes()) {
        const TestExperts experts(options.few_counts().back(), inner, inner == 96, kind, down_kind, random);
        for (bool has_residual : {false, true}) check_mixture(level, experts, has_residual, options, report);
    }
    TestExperts wrong(2, 32, false, kind, down_kind, random);
    for (int32_t number : {-1, int32_t(TestExperts::COUNT)}) {
        wrong.chosen[4] = number;
        bool is_thrown = false;
        try {
            wrong.compute(level, 0, 2, false);
        } catch (const std::out_of_range&) {
            is_thrown = true;
        }
        report.expect(is_thrown, "an expert that there is not is taken");
    }
}

// Each chunk runs once, after all chunks of the phase before it, and each thread finishes once.
void check_order_of_phases(Report& report) {
    constexpr size_t CHUNKS = 8;
    static std::atomic<size_t> num_finished;
    std::atomic<size_t> done[MOST_PHASES] = {};
    std::atomic<bool> is_early{false};
    std::vector<Phase> phases;
    for (size_t phase = 0; phase < MOST_PHASES; phase++)
        phases.push_back({CHUNKS, [&done, &is_early, phase](size_t chunk) {
                              if (phase && done[phase - 1] < CHUNKS) is_early = true;
                              std::this_thread::sleep_for(std::chrono::milliseconds(chunk % 3));
                              done[phase]++;
                          }});
    num_finished = 0;
    run_phases(phases.data(), phases.size(), [] { num_finished++; });
    report.expect(!is_early, "a chunk begins before the last phase has ended");
    report.expect(num_finished == num_threads(), "a thread does not finish");
    for (const auto& count : done) report.expect(count == CHUNKS, "a phase has " + std::to_string(count) + " chunks");
}

// The caller gets the exception of a chunk.
void check_failing_phases(const Level& level, Report& report) {
    const auto fail = [](size_t chunk) {
        if (chunk == 4) throw std::runtime_error("chunk 4");
    };
    const Phase phases[] = {{7, [](size_t) {}}, {9, fail}, {5, [](size_t) {}}};
    bool is_thrown = false;
    try {
        run_phases(phases, 3, level.finish);
    } catch (const std::runtime_error& error) {
        is_thrown = !std::strcmp(error.what(), "chunk 4");
    }
    report.expect(is_thrown, "an exception in a chunk does not reach the caller");
}

bool check_level(const Level& level, const Options& options) {
    Report report(level.name);
    Random random(1);
    check_order_of_phases(report);
    check_failing_phases(level, report);
    for (size_t number = 0; number < std::size(KINDS); number++) {
        const Kind kind = KINDS[number];
        for (Shape shape : options.shapes()) {
            const TestMatrix matrix(shape, kind, random);
            check_weights(matrix, report);
            check_products(level, matrix, options, random, report);
            report.expect(multiply_rows(level, matrix, {}).empty(), "a product of no rows");
        }
        const TestMatrix matrix({40, 70}, kind, random);
        check_largest_sums(level, kind, random, report);
        check_not_finite(level, matrix, options, random, report);
        check_sizes(level, matrix, options, random, report);
        check_activations(level, matrix, random, report);
        check_sources(level, number, options, random, report);
        check_layers(level, number, options, random, report);
        check_experts(level, number, options, random, report);
    }
    check_attention(level, options, report);
    return report.end();
}

int check_levels(const Options& options) {
    std::vector<const Level*> levels(std::begin(LEVELS), std::end(LEVELS));
    levels.push_back(&EMULATED_AMX);
    bool is_right = true, is_known = false;
    for (const Level* level : levels) {
        if (options.level && std::strcmp(options.level, level->name)) continue;
        is_known = true;
        if (level->is_supported())
            is_right &= check_level(*level, options);
        else
            std::printf("%s: this processor does not support it\n", level->name);
        std::fflush(stdout);
    }
    if (!is_known) std::fprintf(stderr, "check: there is no level %s\n", options.level);
    return !is_known ? 2 : is_right ? 0 : 1;
}

bool read_options(int count, char** arguments, Options& options) {
    for (int i = 1; i < count; i++) {
        const bool has_value = i + 1 < count;
        if (!std::strcmp(arguments[i], "--small"))
            options.is_small = true;
        else if (!std::strcmp(arguments[i], "--level") && has_value)
            options.level = arguments[++i];
        else if (!std::strcmp(arguments[i], "--threads") && has_value)
            options.threads = std::atoi(arguments[++i]);
        else
            return false;
    }
    return options.threads > 0;
}

}  // namespace
}  // namespace ouzel

int main(int count, char** arguments) {
    ouzel::Options options;
    if (!ouzel::read_options(count, arguments, options)) {
        std::fprintf(stderr, "usage: check [--threads N] [--level NAME] [--small]\n");
        return 2;
    }
    if (!ouzel::has_avx2()) {
        std::printf("nothing is checked: this processor supports no level\n");
        return 1;
    }
    const tbb::global_control threads(tbb::global_control::max_allowed_parallelism, size_t(options.threads));
    tbb::task_arena arena(options.threads);
    return arena.execute([&] { return ouzel::check_levels(options); });
}
