#include "product.h"

#include <immintrin.h>

#include <algorithm>

#include "phases.h"

namespace ouzel {
namespace {

// Parts of `total` units, at least one unit each.
struct Parts {
    size_t total, count;
    Parts(size_t total_, size_t at_most) : total(total_), count(std::max<size_t>(1, std::min(total_, at_most))) {}
    size_t begin(size_t part) const { return total * part / count; }
};

constexpr size_t BLOCKS_AT_ONCE = 4;  // blocks of a part, at most

size_t parts_for_threads() { return 4 * num_threads(); }

// Writes a product to memory, with factors and bias.
class Writer final : public Sink {
public:
    Writer(const Product& product, float* to) : product_(product), to_(to) {}

    void take(size_t block, size_t first_row, size_t num_rows, const float* values) override {
        const size_t outputs = product_.matrix.layout.outputs, first = block * BLOCK;
        const size_t count = std::min(BLOCK, outputs - first);
        float* to = to_ + first_row * outputs + first;
        const float *factors = product_.factors + first, *bias = product_.bias ? product_.bias + first : nullptr;
        if (count == BLOCK)
            for (size_t row = 0; row < num_rows; row++) take_whole(to + row * outputs, values + row * BLOCK, factors, bias);
        else
            for (size_t row = 0; row < num_rows; row++)
                for (size_t i = 0; i < count; i++)
                    to[row * outputs + i] = __builtin_fmaf(values[row * BLOCK + i], factors[i], bias ? bias[i] : -0.f);
    }

private:
    static void take_whole(float* to, const float* values, const float* factors, const float* bias) {
        for (size_t i = 0; i < BLOCK; i += 8) {
            const __m256 offset = bias ? _mm256_loadu_ps(bias + i) : _mm256_set1_ps(-0.f);
            _mm256_storeu_ps(to + i, _mm256_fmadd_ps(_mm256_loadu_ps(values + i), _mm256_loadu_ps(factors + i), offset));
        }
    }

    const Product& product_;
    float* to_;
};

}  // namespace

void multiply(const Level& level, const Product& product, const float* from, size_t num_rows, float* to) {
    if (!num_rows) return;
    static thread_local Rows rows_of_thread;
    Rows& rows = rows_of_thread;
    const Matrix& matrix = product.matrix;
    const size_t inputs = matrix.layout.inputs, blocks = matrix.layout.blocks();
    rows.resize(num_rows, matrix.layout, level.chunk(num_rows), product.may_be_wide && level.wide_from && num_rows >= level.wide_from);
    Writer writer(product, to);
    const Parts row_parts(num_rows, num_rows <= 2 ? 1 : parts_for_threads());
    const Parts block_parts(blocks, std::max(parts_for_threads(), (blocks + BLOCKS_AT_ONCE - 1) / BLOCKS_AT_ONCE));
    const Phase phases[] = {
        {row_parts.count,
         [&](size_t part) {
             for (size_t row = row_parts.begin(part); row < row_parts.begin(part + 1); row++) level.put_row(rows, row, from + row * inputs);
         }},
        {block_parts.count,
         [&](size_t part) {
             const size_t first = block_parts.begin(part);
             level.multiply(matrix, first, block_parts.begin(part + 1) - first, rows, writer);
         }},
    };
    run_phases(phases, 2, level.finish);
}

void decode_output(const Matrix& matrix, const float* factors, size_t output, float* to) {
    const Layout& layout = matrix.layout;
    const size_t lane = output % BLOCK, cell_bytes = layout.cell_bytes();
    const uint8_t* cell = matrix.block(output / BLOCK);
    const auto half = [&](const uint8_t* p) {
        uint16_t bits;
        __builtin_memcpy(&bits, p + lane * 2, 2);
        return _cvtsh_ss(bits);
    };
    for (size_t input = 0; input < layout.inputs; cell += cell_bytes)
        for (size_t vector = 0; vector < 8; vector++) {
            const size_t s = layout.scales == 2 ? vector / 4 : 0;
            const float scale = half(cell + s * 64), offset = layout.has_offsets ? half(cell + (layout.scales + s) * 64) : 0.f;
            const uint8_t* bytes = cell + layout.header_bytes() + lane / 16 * TILE_BYTES + vector * 64 + lane % 16 * 4;
            for (size_t i = 0; i < 8 && input < layout.inputs; i++, input++) {
                const int value = i < 4 ? bytes[i] & 15 : bytes[i - 4] >> 4;
                to[input] = __builtin_fmaf(float(value - 8), scale, offset) * factors[output];
            }
        }
}

}  // namespace ouzel
