// Products with AMX tiles: quantised rows from 7 on, and rows in bf16 from 128 on. Fewer rows take AVX-512 VNNI, which is faster
// for up to 6 rows.
//
// `T` has the tile instructions. TDPBSSD multiplies the rows of a chunk (tile 4) by 16 outputs (tiles 6 and 7), over the
// inputs that share a scale; the sums of integers go through memory to the sums of floats. A tile that was just stored
// cannot be forwarded to loads: products are read some steps after they are stored.
#pragma once
#include "kernels512.h"

namespace ouzel {
namespace {

constexpr size_t AMX_FROM = 7, WIDE_FROM = 128;  // rows

// The bytes of a nibble less 8, as int8: affine over GF(2), bits 0 to 2 of the nibble, and in bits 3 to 7 the inverse of its
// bit 3.
inline __m512i low_signed(__m512i both) {
    return _mm512_gf2p8affine_epi64_epi8(both, _mm512_set1_epi64(0x0102040808080808), 0xf8);
}
inline __m512i high_signed(__m512i both) {
    return _mm512_gf2p8affine_epi64_epi8(both, _mm512_set1_epi64(0x1020408080808080), 0xf8);
}

// Unpacks the operands of a tile that share a scale to rows of the second operand of TDPBSSD.
template <class C>
inline void unpack(const uint8_t* tile, int s, __m512i table, int8_t* to) {
#pragma GCC unroll 8
    for (int i = 0; i < C::STEPS; i++, to += 128) {
        const int step = s * C::STEPS + i;
        __m512i first, second;
        if (C::BITS == 4) {
            const __m512i both = _mm512_loadu_si512(tile + step * 64);
            first = low_signed(both), second = high_signed(both);
        } else {
            const __m512i middle = _mm512_set1_epi8(char(C::MIDDLE));
            load_operands<Vectors512, C>(tile, step, table, first, second);
            first = _mm512_sub_epi8(first, middle), second = _mm512_sub_epi8(second, middle);
        }
        _mm512_store_si512(to, first);
        _mm512_store_si512(to + 64, second);
    }
}

// The sums of a step become floats and are added: product * scale of the row * scale of the outputs.
inline __m512 add_product(__m512 sum, const int32_t* product, float row_scale, __m512 scale) {
    const __m512 floats = _mm512_cvtepi32_ps(_mm512_load_si512(product));
    return _mm512_fmadd_ps(_mm512_mul_ps(floats, _mm512_set1_ps(row_scale)), scale, sum);
}

// Multiplies a chunk of 8 rows by a block, both halves together: all sums stay in registers.
template <class T, class C>
void multiply_eight(const uint8_t* cells, const Layout& layout, const Chunk& x, float* out) {
    constexpr int R = 8, S = C::SCALES, INPUTS = C::INPUTS;
    const size_t header_bytes = layout.header_bytes(), cell_bytes = layout.cell_bytes();
    const __m512i table = Vectors512::repeat_table(TABLES[layout.table]);
    alignas(64) int8_t weights[4][2048 + 64];  // apart by more than 2048, so that their addresses do not look alike
    alignas(64) int32_t products[4][2][R * 16];
    T::configure(R, INPUTS);
    __m512 sums[R * 2];
#pragma GCC unroll 16
    for (int i = 0; i < R * 2; i++) sums[i] = _mm512_setzero_ps();
    const int steps = int(x.groups) * S;
    const size_t ahead = CELLS_AHEAD * cell_bytes;
    const auto prepare = [&](int step) {
        const uint8_t* cell = cells + size_t(step / S) * cell_bytes;
        const int s = step % S;
        if (s == 0)
            for (size_t i = 0; i < cell_bytes; i += 64) Vectors512::prefetch(cell + ahead + i);
        for (int half = 0; half < 2; half++)
            unpack<C>(cell + header_bytes + half * C::TILE_BYTES, s, table, weights[step & 3] + half * 1024);
    };
    prepare(0);
    for (int step = 0; step < steps + 3; step++) {
        if (step + 1 < steps) prepare(step + 1);
        if (step < steps) {
            const int8_t* b = weights[step & 3];
            asm volatile("" ::: "memory");
            T::template load<4>(x.values + size_t(step / S) * R * GROUP + step % S * INPUTS, GROUP);
            T::template load<6>(b, 64);
            T::template load<7>(b + 1024, 64);
            if (step & 1) {
                T::template zero<0>(), T::template multiply<0, 4, 6>();
                T::template zero<1>(), T::template multiply<1, 4, 7>();
            } else {
                T::template zero<2>(), T::template multiply<2, 4, 6>();
                T::template zero<3>(), T::template multiply<3, 4, 7>();
            }
        }
        if (step >= 1 && step <= steps) {
            auto& to = products[(step - 1) & 3];
            if (step & 1)
                T::template store<2>(to[0], 64), T::template store<3>(to[1], 64);
            else
                T::template store<0>(to[0], 64), T::template store<1>(to[1], 64);
            asm volatile("" ::: "memory");
        }
        if (step < 3) continue;
        const int done = step - 3, s = done % S;
        const uint8_t* cell = cells + size_t(done / S) * cell_bytes;
        const size_t place = size_t(done / S) * R;
        const __m512 scale[2] = {Vectors512::halves(cell + s * 64), Vectors512::halves(cell + s * 64 + 32)};
#pragma GCC unroll 16
        for (int i = 0; i < R * 2; i++)
            sums[i] = add_product(sums[i], products[done & 3][i & 1] + (i >> 1) * 16, x.scale[(place + (i >> 1)) * S + s], scale[i & 1]);
        if (!layout.has_offsets) continue;
        const __m512 offset[2] = {Vectors512::halves(cell + (S + s) * 64), Vectors512::halves(cell + (S + s) * 64 + 32)};
#pragma GCC unroll 16
        for (int i = 0; i < R * 2; i++)
            sums[i] = _mm512_fmadd_ps(_mm512_set1_ps(x.weighted[(place + (i >> 1)) * S + s]), offset[i & 1], sums[i]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < R * 2; i++) _mm512_storeu_ps(out + i * 16, sums[i]);
}

// Multiplies a chunk of 16 rows by a block, one half after the other, so that 16 sums stay in registers.
template <class T, class C>
void multiply_sixteen(const uint8_t* cells, const Layout& layout, const Chunk& x, float* out) {
    constexpr int R = 16, S = C::SCALES, INPUTS = C::INPUTS;
    const size_t header_bytes = layout.header_bytes(), cell_bytes = layout.cell_bytes();
    const __m512i table = Vectors512::repeat_table(TABLES[layout.table]);
    alignas(64) int8_t weights[4][1024 + 64];
    alignas(64) int32_t products[4][R * 16 + 16];
    T::configure(R, INPUTS);
    const int steps = int(x.groups) * S;
    const size_t ahead = CELLS_AHEAD * cell_bytes;
    for (int half = 0; half < 2; half++) {
        const auto prepare = [&](int step) {
            const uint8_t* cell = cells + size_t(step / S) * cell_bytes;
            const int s = step % S;
            if (s + half == 0)
                for (size_t i = 0; i < cell_bytes; i += 64) Vectors512::prefetch(cell + ahead + i);
            unpack<C>(cell + header_bytes + half * C::TILE_BYTES, s, table, weights[step & 3]);
        };
        __m512 sums[R];
#pragma GCC unroll 16
        for (int m = 0; m < R; m++) sums[m] = _mm512_setzero_ps();
        prepare(0);
        for (int step = 0; step < steps + 3; step++) {
            if (step + 1 < steps) prepare(step + 1);
            if (step < steps) {
                asm volatile("" ::: "memory");
                T::template load<4>(x.values + size_t(step / S) * R * GROUP + step % S * INPUTS, GROUP);
                T::template load<6>(weights[step & 3], 64);
                if (step & 1)
                    T::template zero<1>(), T::template multiply<1, 4, 6>();
                else
                    T::template zero<0>(), T::template multiply<0, 4, 6>();
            }
            if (step >= 1 && step <= steps) {
                if (step & 1)
                    T::template store<0>(products[(step - 1) & 3], 64);
                else
                    T::template store<1>(products[(step - 1) & 3], 64);
                asm volatile("" ::: "memory");
            }
            if (step < 3) continue;
            const int done = step - 3, s = done % S;
            const uint8_t* cell = cells + size_t(done / S) * cell_bytes;
            const size_t place = size_t(done / S) * R;
            const __m512 scale = Vectors512::halves(cell + s * 64 + half * 32);
#pragma GCC unroll 16
            for (int m = 0; m < R; m++) sums[m] = add_product(sums[m], products[done & 3] + m * 16, x.scale[(place + m) * S + s], scale);
            if (!layout.has_offsets) continue;
            const __m512 offset = Vectors512::halves(cell + (S + s) * 64 + half * 32);
#pragma GCC unroll 16
            for (int m = 0; m < R; m++) sums[m] = _mm512_fmadd_ps(_mm512_set1_ps(x.weighted[(place + m) * S + s]), offset, sums[m]);
        }
#pragma GCC unroll 16
        for (int m = 0; m < R; m++) _mm512_storeu_ps(out + m * BLOCK + half * 16, sums[m]);
    }
}

constexpr size_t PANEL_TILES = 32;  // tiles of 32 inputs that are unpacked at once

// Where the bf16 of two inputs stand beside each other: the upper halves of the floats of both, by output.
struct Pairs {
    alignas(64) uint16_t index[32];
    Pairs() {
        for (int i = 0; i < 16; i++) index[2 * i] = uint16_t(2 * i + 1), index[2 * i + 1] = uint16_t(32 + 2 * i + 1);
    }
};

// Unpacks cells to bf16 with their scales and offsets: to[2 * groups][2 halves][16 pairs of inputs][16 outputs][2]. The floats
// are cut to bf16, which makes them smaller by a 512th on average; the scales make up for it.
template <class C>
void widen(const uint8_t* cell, const Layout& layout, size_t groups, uint16_t* to) {
    constexpr int S = C::SCALES, LEVELS = 2 * C::MIDDLE, SHIFT = 23 - C::BITS;  // values become the highest bits of fractions
    static const Pairs pairs_;
    const size_t header_bytes = layout.header_bytes(), cell_bytes = layout.cell_bytes();
    const __m512i table = Vectors512::repeat_table(TABLES[layout.table]);
    const __m512i pairs = _mm512_load_si512(pairs_.index);
    const __m512i mask = _mm512_set1_epi32((LEVELS - 1) << SHIFT), one = _mm512_set1_epi32(0x3f800000);
    const __m512 correction = _mm512_set1_ps(1 + 1 / 512.f);
    for (size_t group = 0; group < groups; group++, cell += cell_bytes, to += 2048)
        for (int half = 0; half < 2; half++)
            for (int s = 0; s < S; s++) {
                const __m512 scale = _mm512_mul_ps(Vectors512::halves(cell + s * 64 + half * 32), correction);
                const __m512 a = _mm512_mul_ps(scale, _mm512_set1_ps(LEVELS)), b = _mm512_mul_ps(scale, _mm512_set1_ps(-LEVELS - C::MIDDLE));
                const __m512 c = layout.has_offsets ? _mm512_fmadd_ps(Vectors512::halves(cell + (S + s) * 64 + half * 32), correction, b) : b;
                // 1 + value / LEVELS as a float, then (value - MIDDLE) * scale + offset.
                const auto number = [&](__m512i shifted) {
                    const __m512 value = _mm512_castsi512_ps(_mm512_ternarylogic_epi32(shifted, mask, one, 0xea));
                    return _mm512_castps_si512(_mm512_fmadd_ps(value, a, c));
                };
                const auto put = [&](uint16_t* row, __m512i first, __m512i second) {
                    _mm512_store_si512(row, _mm512_permutex2var_epi16(number(first), pairs, number(second)));
                };
                const auto put_operand = [&](uint16_t* rows, __m512i bytes) {  // four inputs
                    constexpr int THIRD = SHIFT > 16 ? SHIFT - 16 : 16 - SHIFT, FOURTH = 24 - SHIFT;
                    const __m512i third = SHIFT > 16 ? _mm512_slli_epi32(bytes, THIRD) : _mm512_srli_epi32(bytes, THIRD);
                    put(rows, _mm512_slli_epi32(bytes, SHIFT), _mm512_slli_epi32(bytes, SHIFT - 8));
                    put(rows + 32, third, _mm512_srli_epi32(bytes, FOURTH));
                };
#pragma GCC unroll 4
                for (int i = 0; i < C::STEPS; i++) {
                    const int step = s * C::STEPS + i;
                    uint16_t* rows = to + ((step / 4) * 2 + half) * 512 + step % 4 * 128;
                    __m512i first, second;
                    load_operands<Vectors512, C>(cell + header_bytes + half * C::TILE_BYTES, step, table, first, second);
                    put_operand(rows, first), put_operand(rows + 64, second);
                }
            }
}

// Multiplies rows in bf16 by some blocks; `out` is [block][chunk][16 rows][32 outputs].
template <class T, class C>
void multiply_wide(const Matrix& matrix, size_t first_block, size_t num_blocks, const Rows& x, float* out) {
    alignas(64) uint16_t panel[PANEL_TILES * 1024];
    T::configure(16, 64);
    const size_t tiles = x.groups * 2, cell_bytes = matrix.layout.cell_bytes();
    for (size_t k = 0; k < tiles; k += PANEL_TILES) {
        const size_t n = tiles - k < PANEL_TILES ? tiles - k : PANEL_TILES;
        for (size_t block = 0; block < num_blocks; block++) {
            widen<C>(matrix.block(first_block + block) + k / 2 * cell_bytes, matrix.layout, n / 2, panel);
            asm volatile("" ::: "memory");
            for (size_t chunk = 0; chunk < x.chunks; chunk += 2) {
                float* to = out + (block * x.chunks + chunk) * 512;
                if (k) {
                    T::template load<0>(to, 128), T::template load<1>(to + 16, 128);
                    T::template load<2>(to + 512, 128), T::template load<3>(to + 528, 128);
                } else {
                    T::template zero<0>(), T::template zero<1>(), T::template zero<2>(), T::template zero<3>();
                }
                const uint16_t* a = x.wide.data() + (chunk * tiles + k) * 512;
                const uint16_t* second = a + tiles * 512;
                const uint16_t* w = panel;
                for (size_t i = 0; i < n; i++, a += 512, second += 512, w += 1024) {
                    T::template load<4>(a, 64), T::template load<6>(w, 64);
                    T::template multiply_bf16<0, 4, 6>();
                    T::template load<7>(w + 512, 64);
                    T::template multiply_bf16<1, 4, 7>();
                    T::template load<5>(second, 64);
                    T::template multiply_bf16<2, 5, 6>();
                    T::template multiply_bf16<3, 5, 7>();
                }
                T::template store<0>(to, 128), T::template store<1>(to + 16, 128);
                T::template store<2>(to + 512, 128), T::template store<3>(to + 528, 128);
                asm volatile("" ::: "memory");
            }
        }
    }
}

inline size_t amx_chunk(size_t num_rows) {
    if (num_rows < AMX_FROM) return choose_chunk<CHUNKS_512>(num_rows);
    return num_rows <= 8 ? 8 : 16;
}

template <class T>
struct AmxKernels {
    template <class C>
    static auto find(size_t chunk) {
        return chunk < AMX_FROM ? Kernels512::find<C>(chunk)
               : chunk == 8     ? multiply_eight<T, C>
                                : multiply_sixteen<T, C>;
    }
};

template <class T>
void multiply_by_tiles(const Matrix& matrix, size_t first_block, size_t num_blocks, const Rows& rows, Sink& sink) {
    if (!rows.is_wide) return multiply_any<AmxKernels<T>>(matrix, first_block, num_blocks, rows, sink);
    float* sums = wide_sums(num_blocks * rows.chunks * 16 * BLOCK);
    matrix.layout.with_cells([&](auto cells) { multiply_wide<T, decltype(cells)>(matrix, first_block, num_blocks, rows, sums); });
    for (size_t row = 0; row < rows.count; row += 16) {  // block by block, so that neighbouring outputs of a row are written together
        const size_t left = rows.count - row, num_rows = left < 16 ? left : 16;
        for (size_t block = 0; block < num_blocks; block++)
            sink.take(first_block + block, row, num_rows, sums + (block * rows.chunks * 16 + row) * BLOCK);
    }
}

// Puts groups of rows in int8 or bf16.
struct TileRows {
    static void put(Rows& rows, size_t row, size_t group, const float* from) {
        if (!rows.is_wide) return Quantizer<Vectors512>::put(rows, row, group, from);
        uint16_t* to = rows.wide.data() + rows.wide_at(row, group);
        for (int half = 0; half < 2; half++, from += 32)
            _mm512_storeu_si512(to + half * 512, reinterpret_cast<__m512i>(
                                                     _mm512_cvtne2ps_pbh(_mm512_loadu_ps(from + 16), _mm512_loadu_ps(from))));
    }
};

}  // namespace
}  // namespace ouzel
