// Checks the products of every level that this processor supports against plain loops, rows of matrices, and phases.
//
// Quantised rows: all levels give the bits of a loop that rounds as the kernels do (NaN stands for any NaN), and are as close
// to the product in doubles as int8 can be. Rows in bf16: as close as bf16 can be. `just kernels-check` runs this with the
// sanitizers of addresses and of undefined behaviour; arrays have no byte to spare.
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "phases.h"
#include "product.h"
#include "tbb/global_control.h"
#include "tbb/task_arena.h"

using namespace ouzel;

namespace {

constexpr int THREADS = 4;  // more than processors, perhaps: threads come late
constexpr int MOST_FAULTS = 10;

int num_faults = 0;
std::mt19937 random_bits(7);

float uniform(float low, float high) { return std::uniform_real_distribution<float>(low, high)(random_bits); }
uint32_t below(uint32_t count) { return std::uniform_int_distribution<uint32_t>(0, count - 1)(random_bits); }

float widen_half(uint16_t bits) {
    const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    const float size = exponent ? std::ldexp(float(1024 + mantissa), exponent - 25) : std::ldexp(float(mantissa), -24);
    return bits >> 15 ? -size : size;
}

// A matrix and its weights, unpacked.
struct TestMatrix {
    Layout layout;
    std::unique_ptr<uint8_t[]> memory;
    Matrix matrix;
    std::vector<int> values;             // [outputs][inputs], from -8 to 7
    std::vector<float> scales, offsets;  // [outputs][inputs]
    std::vector<float> factors, bias;    // [outputs]

    explicit TestMatrix(const Layout& layout_) : layout(layout_), memory(new uint8_t[layout_.bytes() + 1]()) {
        uint8_t* cells = memory.get() + 1;  // at an odd address
        matrix = {layout, cells};
        for (size_t output = 0; output < layout.outputs; output++) {
            factors.push_back(std::ldexp(1.f, int(below(5)) - 2));
            bias.push_back(uniform(-1, 1));
            for (size_t input = 0; input < layout.inputs; input++) {
                uint8_t* cell = cells + output / BLOCK * layout.block_bytes() + input / GROUP * layout.cell_bytes();
                const size_t inputs_of_scale = GROUP / size_t(layout.scales), lane = output % BLOCK;
                const size_t number = input % GROUP / inputs_of_scale;
                uint8_t* scale = cell + (number * BLOCK + lane) * 2;
                uint8_t* offset = scale + size_t(layout.scales) * BLOCK * 2;
                if (input % inputs_of_scale == 0) {  // one of 8 scales is denormal
                    put(scale, below(8) ? 0x2000 + below(0x800) : below(0x400));
                    if (layout.has_offsets) put(offset, below(2) << 15 | (0x1c00 + below(0x1000)));
                }
                const uint32_t value = below(16);
                const size_t in_vector = input % 8;
                uint8_t& byte = cell[layout.header_bytes() + lane / 16 * TILE_BYTES + input % GROUP / 8 * 64 + lane % 16 * 4 + in_vector % 4];
                byte = uint8_t(byte | value << (in_vector < 4 ? 0 : 4));
                values.push_back(int(value) - 8);
                scales.push_back(get(scale));
                offsets.push_back(layout.has_offsets ? get(offset) : 0.f);
            }
        }
    }

    static void put(uint8_t* to, uint32_t half) { to[0] = uint8_t(half), to[1] = uint8_t(half >> 8); }
    static float get(const uint8_t* from) { return widen_half(uint16_t(from[0] | from[1] << 8)); }
};

enum class Kind { NORMAL, LARGE, MIXED, TINY, ZEROS, NOT_A_NUMBER, INFINITE };

Kind kind_of(size_t row) {
    constexpr Kind KINDS[] = {Kind::NORMAL, Kind::MIXED, Kind::NOT_A_NUMBER, Kind::LARGE, Kind::ZEROS, Kind::INFINITE, Kind::TINY};
    return KINDS[row % 7];
}

float number_of(Kind kind) {
    switch (kind) {
        case Kind::LARGE: return uniform(-1e30f, 1e30f);
        case Kind::MIXED: return below(4) ? uniform(-1e-3f, 1e-3f) : below(2) ? uniform(-500, 500) : uniform(-1e-39f, 1e-39f);
        case Kind::TINY: return uniform(-1e-39f, 1e-39f);  // denormal
        case Kind::ZEROS: return below(2) ? 0.f : -0.f;
        default: return uniform(-2, 2);
    }
}

std::vector<float> make_rows(size_t num_rows, size_t inputs) {
    std::vector<float> rows(num_rows * inputs);
    for (size_t row = 0; row < num_rows; row++) {
        for (size_t input = 0; input < inputs; input++) rows[row * inputs + input] = number_of(kind_of(row));
        float& one = rows[row * inputs + below(uint32_t(inputs))];
        if (kind_of(row) == Kind::NOT_A_NUMBER) one = NAN;
        if (kind_of(row) == Kind::INFINITE) one = below(2) ? INFINITY : -INFINITY;
    }
    return rows;
}

// What a product is by plain loops.
struct Expected {
    float quantized;           // with the rounding of the kernels
    double exact;              // without
    double error, wide_error;  // the most by which products of int8 and of bf16 may differ from it
};

Expected expect(const TestMatrix& m, size_t output, const float* row, bool has_bias) {
    const size_t inputs = m.layout.inputs;
    const float factor = m.factors[output];
    float sum = 0;
    double exact = 0, error = 0, size = 0;
    const size_t inputs_of_scale = GROUP / size_t(m.layout.scales);
    for (size_t begin = 0; begin < inputs; begin += inputs_of_scale) {
        const size_t end = std::min(inputs, begin + inputs_of_scale);
        float largest = 0;
        bool is_finite = true;
        for (size_t i = begin; i < end; i++) largest = std::max(largest, std::fabs(row[i])), is_finite &= bool(std::isfinite(row[i]));
        const bool is_zero = largest < 1e-30f;
        const float inverse = is_finite && !is_zero ? 127.f / largest : 0.f;
        const float row_scale = !is_finite ? NAN : is_zero ? 0.f : largest / 127.f;
        int product = 0, total = 0;
        for (size_t i = begin; i < end; i++) {
            const size_t place = output * inputs + i;
            const int value = is_finite ? int(std::nearbyint(row[i] * inverse)) : 0;
            product += value * m.values[place], total += value;
            const double weight = double(m.values[place]) * m.scales[place] + m.offsets[place];
            const double weight_size = std::fabs(m.values[place] * m.scales[place]) + std::fabs(m.offsets[place]);
            exact += row[i] * weight;
            size += std::fabs(row[i]) * weight_size, error += 0.5 * row_scale * weight_size;
        }
        sum = std::fma(float(product) * row_scale, m.scales[output * inputs + begin], sum);
        if (m.layout.has_offsets) sum = std::fma(float(total) * row_scale, m.offsets[output * inputs + begin], sum);
    }
    const float bias = has_bias ? m.bias[output] : -0.f;
    const double rounding = 1e-5 * (size * factor + std::fabs(bias)) + 1e-28;
    return {std::fma(sum, factor, bias), exact * factor + bias, error * factor * 1.001 + rounding, size * factor / 128 + rounding};
}

void report(const Level& level, const TestMatrix& m, size_t num_rows, size_t row, size_t output, const char* what, double given, double wanted) {
    if (++num_faults <= MOST_FAULTS)
        std::printf("%s, %zu outputs x %zu inputs, scales %d, offsets %d, %zu rows: row %zu, output %zu %s: %.9g, expected %.9g\n",
                    level.name, m.layout.outputs, m.layout.inputs, m.layout.scales, m.layout.has_offsets, num_rows, row, output, what, given, wanted);
}

bool have_same_bits(float a, float b) { return std::isnan(a) ? std::isnan(b) : !std::memcmp(&a, &b, sizeof a); }

void check_products(const Level& level, const TestMatrix& m, const std::vector<float>& rows, const std::vector<Expected>& expected,
                    size_t num_rows, bool has_bias, bool may_be_wide) {
    const size_t outputs = m.layout.outputs;
    std::unique_ptr<float[]> to(new float[num_rows * outputs]);
    std::fill_n(to.get(), num_rows * outputs, 12345.f);
    multiply(level, {rows.data(), num_rows}, {{m.matrix, m.factors.data(), has_bias ? m.bias.data() : nullptr}}, {to.get()}, nullptr, {},
             may_be_wide);
    const bool is_wide = may_be_wide && level.wide_from && num_rows >= level.wide_from;
    for (size_t row = 0; row < num_rows; row++)
        for (size_t output = 0; output < outputs; output++) {
            const float given = to[row * outputs + output];
            const Expected& wanted = expected[row * outputs + output];
            const bool is_finite = kind_of(row) != Kind::NOT_A_NUMBER && kind_of(row) != Kind::INFINITE;
            if (!is_wide && !have_same_bits(given, wanted.quantized)) report(level, m, num_rows, row, output, "has other bits", given, wanted.quantized);
            if (bool(std::isfinite(given)) != is_finite) report(level, m, num_rows, row, output, "is wrong", given, wanted.exact);
            if (is_finite && !(std::fabs(given - wanted.exact) <= (is_wide ? wanted.wide_error : wanted.error)))
                report(level, m, num_rows, row, output, is_wide ? "in bf16 is far away" : "is far away", given, wanted.exact);
        }
}

void check_decoded(const TestMatrix& m) {
    const size_t inputs = m.layout.inputs;
    for (size_t output = 0; output < m.layout.outputs; output++) {
        std::unique_ptr<float[]> to(new float[inputs]);
        decode_output(m.matrix, m.factors.data(), output, to.get());
        for (size_t i = 0; i < inputs; i++) {
            const size_t place = output * inputs + i;
            const float wanted = std::fma(float(m.values[place]), m.scales[place], m.offsets[place]) * m.factors[output];
            if (!have_same_bits(to[i], wanted) && ++num_faults <= MOST_FAULTS)
                std::printf("decode_output: output %zu, input %zu: %.9g, expected %.9g\n", output, i, to[i], wanted);
        }
    }
}

// No chunk begins before all chunks of the phase before it have ended, and each runs once.
void check_phases() {
    constexpr size_t CHUNKS = 8;
    static std::atomic<size_t> num_finished{0};
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
    bool is_complete = num_finished == num_threads();
    for (const auto& count : done) is_complete &= count == CHUNKS;
    if ((is_early || !is_complete) && ++num_faults <= MOST_FAULTS) std::printf("phases: %s\n", is_early ? "a chunk began too early" : "a chunk is missing");
}

void check_matrix(const Layout& layout, const std::vector<const Level*>& levels) {
    const TestMatrix m(layout);
    check_decoded(m);
    std::vector<size_t> counts = {128, 140};
    for (size_t count = 1; count <= 17; count++) counts.push_back(count);
    for (size_t num_rows : counts) {
        const bool has_bias = num_rows % 2;
        const std::vector<float> rows = make_rows(num_rows, layout.inputs);
        std::vector<Expected> expected;
        for (size_t row = 0; row < num_rows; row++)
            for (size_t output = 0; output < layout.outputs; output++) expected.push_back(expect(m, output, rows.data() + row * layout.inputs, has_bias));
        for (const Level* level : levels)
            for (bool may_be_wide : {false, true}) check_products(*level, m, rows, expected, num_rows, has_bias, may_be_wide);
    }
}

}  // namespace

int main() {
    std::vector<const Level*> levels;
    for (const Level* level : {&AMX, &AVX512_VNNI, &AVX_VNNI, &AVX2, &EMULATED_AMX}) {
        std::printf("%s: %s\n", level->name, level->is_supported() ? "checked" : "NOT CHECKED, this processor has no such instructions");
        if (level->is_supported()) levels.push_back(level);
    }
    const tbb::global_control control(tbb::global_control::max_allowed_parallelism, THREADS);
    tbb::task_arena arena(THREADS);
    arena.execute([&] {
        check_phases();
        // The last two have more blocks than parts, and more inputs than a panel of bf16.
        constexpr size_t SHAPES[][2] = {{1, 32}, {33, 96}, {70, 320}, {600, 64}, {40, 1100}};
        for (const auto& shape : SHAPES)
            for (int scales : {1, 2})
                for (bool has_offsets : {false, true}) check_matrix({shape[0], shape[1], scales, has_offsets}, levels);
    });
    if (levels.empty()) num_faults++;
    std::printf("%d faults\n", num_faults);
    return num_faults ? 1 : 0;
}
