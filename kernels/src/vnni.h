// Products of quantised rows with vectors of one size, for levels without tiles.
//
// `V` has the operations of the vectors. A strip is the outputs of one vector: a block has 32 / V::LANES strips. The
// sums of M rows and H strips stay in registers, from the first group to the last.
#pragma once
#include "arithmetic.h"
#include "level.h"

namespace ouzel {
namespace {

constexpr size_t CELLS_AHEAD = 4;  // weights are prefetched this many cells ahead

struct Chunk {  // the rows of a chunk
    const int8_t* values;
    const float* scale;
    const int32_t* minus_sum;
    const float* weighted;
    size_t rows, groups;
};

inline Chunk chunk_of(const Rows& rows, size_t number) {
    const size_t place = number * rows.groups * rows.chunk;
    return {rows.values.data() + place * GROUP, rows.scale.data() + place * rows.scales, rows.minus_sum.data() + place * rows.scales,
            rows.weighted.data() + place * rows.scales, rows.chunk, rows.groups};
}

// Two operands of a tile, from the address of their first output: operand 2 * step and the next one. `table` is a vector of the table
// again and again, if the cells have one.
template <class V, class C>
OUZEL_INLINE void load_operands(const uint8_t* tile, int step, typename V::Int table, typename V::Int& first, typename V::Int& second) {
    if (C::STORED_BITS == 8) {
        first = V::load(tile + step * 128), second = V::load(tile + step * 128 + 64);
        return;
    }
    const typename V::Int both = V::load(tile + step * 64);
    first = V::low_half(both), second = V::high_half(both);
    if (C::BY_TABLE) first = V::look_up(table, first), second = V::look_up(table, second);
    if (C::STORED_BITS == 4) return;
    const typename V::Int high = V::load(tile + HIGH_BITS_AT + step / 2 * 64);
    first = V::merged(step % 2 ? high : V::template left<4>(high), 0x30, first);
    second = V::merged(step % 2 ? V::template right<2>(high) : V::template left<2>(high), 0x30, second);
}

template <class V, int M, int H, class C>
void multiply_strips(const uint8_t* cells, const Layout& layout, const Chunk& x, int first_strip, float* out) {
    constexpr int LANES = V::LANES, S = C::SCALES, NUM = M * H;
    constexpr int STEPS_IN_16_BITS = V::template steps_in_16_bits<C::BITS>();
    constexpr int FLUSHED_AFTER = STEPS_IN_16_BITS < C::STEPS ? STEPS_IN_16_BITS : C::STEPS;
    const size_t header_bytes = layout.header_bytes(), cell_bytes = layout.cell_bytes(), ahead = CELLS_AHEAD * cell_bytes;
    const bool has_offsets = layout.has_offsets;
    const typename V::Int table = V::repeat_table(TABLES[layout.table]);
    typename V::Float sums[NUM];
#pragma GCC unroll 32
    for (int i = 0; i < NUM; i++) sums[i] = V::zero();
    const int8_t* values = x.values;
    const float *scale = x.scale, *weighted = x.weighted;
    const int32_t* minus_sum = x.minus_sum;
    for (size_t group = 0; group < x.groups; group++) {
        const uint8_t* tiles = cells + header_bytes;
        if (first_strip == 0) {
#pragma GCC unroll 4
            for (int s = 0; s < S; s++) V::prefetch(cells + ahead + s * BLOCK * 2);
#pragma GCC unroll 4
            for (int s = S; s < 2 * S && has_offsets; s++) V::prefetch(cells + ahead + s * BLOCK * 2);
        }
#pragma GCC unroll 4
        for (int s = 0; s < S; s++) {
            typename V::Sum products[NUM];
#pragma GCC unroll 32
            for (int i = 0; i < NUM; i++) products[i] = V::template start<C::BITS>(minus_sum[i / H * S + s]);
#pragma GCC unroll 8
            for (int step = s * C::STEPS; step < (s + 1) * C::STEPS; step++) {
                typename V::Int first[H], second[H];
#pragma GCC unroll 4
                for (int h = 0; h < H; h++) {
                    const int lane = (first_strip + h) * LANES;
                    const uint8_t* tile = tiles + size_t(lane / 16) * C::TILE_BYTES;
                    if (lane % 16 == 0)  // as many lines of a later cell as a step loads
                        for (int line = step * C::STORED_BITS / 4; line < (step + 1) * C::STORED_BITS / 4; line++) V::prefetch(tile + ahead + line * 64);
                    load_operands<V, C>(tile + lane % 16 * 4, step, table, first[h], second[h]);
                }
#pragma GCC unroll 32
                for (int i = 0; i < NUM; i++) {
                    const int8_t* four = values + i / H * GROUP + step * 8;
                    V::template add<C::BITS>(products[i], first[i % H], four);
                    V::template add_second<C::BITS, (NUM < 8)>(products[i], second[i % H], four + 4);
                }
                if (FLUSHED_AFTER && (step + 1) % (FLUSHED_AFTER ? FLUSHED_AFTER : 1) == 0) {
#pragma GCC unroll 32
                    for (int i = 0; i < NUM; i++) V::flush(products[i]);
                }
            }
#pragma GCC unroll 32
            for (int i = 0; i < NUM; i++) {
                const int strip = first_strip + i % H, m = i / H;
                const typename V::Float factor = V::halves(cells + s * BLOCK * 2 + strip * LANES * 2);
                const typename V::Float product = V::multiply(V::total(products[i]), V::all(scale[m * S + s]));
                sums[i] = V::fused(product, factor, sums[i]);
            }
            if (!has_offsets) continue;
#pragma GCC unroll 32
            for (int i = 0; i < NUM; i++) {
                const int strip = first_strip + i % H, m = i / H;
                const typename V::Float offset = V::halves(cells + (S + s) * BLOCK * 2 + strip * LANES * 2);
                sums[i] = V::fused(V::all(weighted[m * S + s]), offset, sums[i]);
            }
        }
        cells += cell_bytes, values += x.rows * GROUP, scale += x.rows * S;
        minus_sum += x.rows * S, weighted += x.rows * S;
    }
#pragma GCC unroll 32
    for (int i = 0; i < NUM; i++) V::store(out + i / H * BLOCK + (first_strip + i % H) * LANES, sums[i]);
}

template <class V, int M, int H, class C>
void multiply_block(const uint8_t* cells, const Layout& layout, const Chunk& x, float* out) {
    for (int strip = 0; strip < int(BLOCK) / V::LANES; strip += H) multiply_strips<V, M, H, C>(cells, layout, x, strip, out);
}

// Multiplies by blocks. `Kernels` finds the function for the kind of the cells and the number of rows in a chunk.
template <class Kernels>
void multiply_any(const Matrix& matrix, size_t first_block, size_t num_blocks, const Rows& rows, Sink& sink) {
    alignas(64) float out[16 * BLOCK];
    matrix.layout.with_cells([&](auto cells) {
        const auto kernel = Kernels::template find<decltype(cells)>(rows.chunk);
        for (size_t block = first_block; block < first_block + num_blocks; block++)
            for (size_t number = 0; number < rows.chunks; number++) {
                const size_t first = number * rows.chunk, left = rows.count - first;
                kernel(matrix.block(block), matrix.layout, chunk_of(rows, number), out);
                sink.take(block, first, left < rows.chunk ? left : rows.chunk, out);
            }
    });
}

// The smallest size of a chunk with which the rows make as few chunks as with the largest size.
template <const auto& SIZES>
size_t choose_chunk(size_t num_rows) {
    size_t most = 0;
    for (size_t size : SIZES) most = size;
    const size_t chunks = (num_rows + most - 1) / most;
    for (size_t size : SIZES)
        if (size * chunks >= num_rows) return size;
    return most;
}

inline void finish_nothing() {}  // for levels that hold nothing between products

// Quantises the inputs that share a scale: value = round(x * 127 / largest), scale = largest / 127. A number that is not
// finite gives the scale NaN, so that its products are NaN; groups of numbers below 1e-30 become 0.
template <class V, int S>
void quantize_group(Rows& rows, size_t row, size_t group, const float* from) {
    constexpr int INPUTS = int(GROUP) / S;
    for (int s = 0; s < S; s++, from += INPUTS) {
        const size_t place = rows.at(row, group) * S + s;
        const uint32_t largest_bits = V::template largest_bits<INPUTS>(from);
        float largest;
        __builtin_memcpy(&largest, &largest_bits, 4);
        const bool is_finite = largest_bits < 0x7f800000u, is_zero = largest < 1e-30f;
        const float inverse = is_finite && !is_zero ? 127.f / largest : 0.f;
        const int32_t sum = V::template quantize<INPUTS>(from, inverse, is_finite, rows.values.data() + place * INPUTS);
        const float scale = !is_finite ? __builtin_nanf("") : is_zero ? 0.f : largest / 127.f;
        rows.scale.data()[place] = scale;
        rows.minus_sum.data()[place] = -sum;
        rows.weighted.data()[place] = float(sum) * scale;
    }
}

// Quantises one group of a row.
template <class V>
struct Quantizer {
    static void put(Rows& rows, size_t row, size_t group, const float* from) {
        const auto quantize = rows.scales == 1 ? quantize_group<V, 1> : rows.scales == 2 ? quantize_group<V, 2> : quantize_group<V, 4>;
        quantize(rows, row, group, from);
    }
};

// Calls put(group, 64 numbers, count) for all groups of a row; the last group has `count` numbers, then zeros.
template <class Put>
OUZEL_INLINE void put_groups(const float* from, size_t inputs, Put&& put) {
    const size_t whole = inputs / GROUP, rest = inputs % GROUP;
    for (size_t group = 0; group < whole; group++) put(group, from + group * GROUP, GROUP);
    if (!rest) return;
    alignas(64) float last[GROUP] = {};
    __builtin_memcpy(last, from + whole * GROUP, rest * sizeof(float));
    put(whole, last, rest);
}

template <class P>
void put_row(Rows& rows, size_t row, const float* from) {
    put_groups(from, rows.inputs, [&](size_t group, const float* numbers, size_t) { P::put(rows, row, group, numbers); });
}

// Number i of a row is added to sum i % 64, and the sums are added in halves: all levels add in this order.
template <class V>
float sum_of_squares(const float* from, size_t inputs) {
    constexpr int VECTORS = int(GROUP) / V::LANES;
    typename V::Float sums[VECTORS];
    for (int i = 0; i < VECTORS; i++) sums[i] = V::zero();
    put_groups(from, inputs, [&](size_t, const float* numbers, size_t) {
        for (int i = 0; i < VECTORS; i++) {
            const typename V::Float x = V::load_floats(numbers + i * V::LANES);
            sums[i] = V::fused(x, x, sums[i]);
        }
    });
    alignas(64) float parts[GROUP];
    for (int i = 0; i < VECTORS; i++) V::store(parts + i * V::LANES, sums[i]);
    return add_in_halves<GROUP>(parts);
}

// The factor of the numbers of a row in an RMS norm, without the weight.
template <class V>
float norm_factor(const float* from, size_t count, float epsilon) {
    return 1.f / __builtin_sqrtf(sum_of_squares<V>(from, count) / float(count) + epsilon);
}

// The numbers of a group, of which there are `count`. Fewer than 64 are copied to `zeros`.
OUZEL_INLINE const float* whole_group(const float* from, size_t count, float* zeros) {
    if (count == GROUP) return from;
    __builtin_memcpy(zeros, from, count * sizeof(float));
    return zeros;
}

template <class V, class P>
void put_normed_row(Rows& rows, size_t row, const float* from, const float* weight, float epsilon) {
    const typename V::Float factor = V::all(norm_factor<V>(from, rows.inputs, epsilon));
    put_groups(from, rows.inputs, [&](size_t group, const float* numbers, size_t count) {
        alignas(64) float zeros[GROUP] = {}, normed[GROUP];
        const float* weights = whole_group(weight + group * GROUP, count, zeros);
        for (int i = 0; i < int(GROUP); i += V::LANES)
            V::store(normed + i, V::times(V::times(V::load_floats(numbers + i), factor), V::load_floats(weights + i)));
        P::put(rows, row, group, normed);
    });
}

template <class V>
void normalise_row(float* row, size_t size, const float* weight, float epsilon, const float* residual) {
    const typename V::Float factor = V::all(norm_factor<V>(row, size, epsilon));
    put_groups(row, size, [&](size_t group, const float* numbers, size_t count) {
        alignas(64) float zeros[2][GROUP] = {}, result[GROUP];
        const float* weights = whole_group(weight + group * GROUP, count, zeros[0]);
        const float* added = residual ? whole_group(residual + group * GROUP, count, zeros[1]) : zeros[1];
        for (int i = 0; i < int(GROUP); i += V::LANES) {
            const typename V::Float normed = V::times(V::times(V::load_floats(numbers + i), factor), V::load_floats(weights + i));
            V::store(result + i, V::plus(V::load_floats(added + i), normed));
        }
        __builtin_memcpy(row + group * GROUP, result, count * sizeof(float));
    });
}

template <class V>
void turn_head(float* head, size_t size, size_t turned, const float* weight, float epsilon, const float* cos, const float* sin) {
    const size_t half = turned / 2, in_vectors = half / V::LANES * V::LANES;
    if (weight) {
        const typename V::Float factor = V::all(norm_factor<V>(head, size, epsilon));
        for (size_t i = 0; i < size; i += V::LANES)
            V::store(head + i, V::times(V::times(V::load_floats(head + i), factor), V::load_floats(weight + i)));
    }
    for (size_t i = 0; i < in_vectors; i += V::LANES) {
        const typename V::Float a = V::load_floats(head + i), b = V::load_floats(head + half + i);
        const typename V::Float c = V::load_floats(cos + i), s = V::load_floats(sin + i);
        V::store(head + i, V::minus(V::times(a, c), V::times(b, s)));
        V::store(head + half + i, V::fused(b, c, V::times(a, s)));
    }
    for (size_t i = in_vectors; i < half; i++) {
        const float a = head[i], b = head[half + i];
        head[i] = a * cos[i] - b * sin[i];
        head[half + i] = __builtin_fmaf(b, cos[i], a * sin[i]);
    }
}

template <class V, class P>
void put_gated_group(Rows& rows, size_t row, size_t group, float* gate, const float* up, Gate function) {
    const typename V::Float one = V::all(1.f), linear = V::all(-function.linear), cubic = V::all(-function.cubic);
    const typename V::Float limit = V::all(function.limit), least = V::all(-function.limit), offset = V::all(function.up_offset);
    for (int i = 0; i < int(GROUP); i += V::LANES) {
        const typename V::Float x = V::least(V::load_floats(gate + i), limit);
        const typename V::Float e = exponential<V>(V::times(x, V::fused(V::times(x, x), cubic, linear)));
        const typename V::Float y = V::plus(V::largest(V::least(V::load_floats(up + i), limit), least), offset);
        V::store(gate + i, V::times(V::over(x, V::plus(one, e)), y));
    }
    P::put(rows, row, group, gate);
}

}  // namespace
}  // namespace ouzel
