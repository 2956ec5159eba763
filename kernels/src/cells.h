// The layout of a matrix of 4-, 6- or 8-bit weights: the same bytes serve one row of activations and thousands.
//
// A matrix of N outputs and K inputs is stored as cells of 32 outputs x 64 inputs; N and K are padded with zeros. The
// cells of 32 outputs (a block) lie one after the other, so that a thread reads its blocks from begin to end. A cell has
//
//   scales    f16 [S][32]   one scale for each output and each 64 / S inputs; S is 1, 2 or 4
//   offsets   f16 [S][32]   only in matrices with offsets
//   values    two tiles of 16 outputs x 64 inputs
//
// A value is stored plus 8 (of 4 bits), 32 (of 6 bits) or 128 (of 8 bits), the middle. With the factor of its output (a power
// of two, which keeps scales within f16) a weight is
//
//   w = ((value - middle) * scale + offset) * factor
//
// Values of 4 bits may be places in a table instead: then the value is the number in the table, and the middle is 128.
//
// Four inputs of the 16 outputs of a tile are an operand: a vector of 16 outputs x 4 bytes, one input to a byte. VPDPBUSD takes
// operands, and the rows of the second operand of TDPBSSD are operands. A tile has 16 of them, for the inputs from 0 on:
//
//   8 bits    u8 [16][64]   the operands
//   4 bits    u8 [8][64]    operand 2 v in the low halves of the bytes of vector v, operand 2 v + 1 in the high halves
//   6 bits    u8 [12][64]   the low four bits like tiles of 4 bits, then [4][64] with the two high bits of all operands: those of
//                           operand 4 v + i are bits 2 i and 2 i + 1 of the bytes of vector v
#pragma once
#include <cstddef>
#include <cstdint>

// Files that are compiled for different instructions include this one: a function that is not inlined would exist once, with
// the instructions of any of them.
#define OUZEL_INLINE __attribute__((always_inline)) inline

namespace ouzel {

constexpr size_t BLOCK = 32;  // outputs of a cell
constexpr size_t GROUP = 64;  // inputs of a cell
constexpr size_t MOST_OUTPUTS = size_t(1) << 30, MOST_INPUTS = size_t(1) << 24;

// Where the two high bits of a tile of 6 bits begin.
constexpr size_t HIGH_BITS_AT = 512;

// The tables: the numbers plus 128.
enum Table { NO_TABLE, IQ4_TABLE, E2M1_TABLE };
constexpr int NUM_TABLES = 3;
alignas(16) constexpr uint8_t TABLES[NUM_TABLES][16] = {
    {},
    // The levels of IQ4_NL and IQ4_XS: ggml-common.h, kvalues_iq4nl.
    {1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241},
    // Twice the numbers of E2M1, the values of MXFP4 and NVFP4 (OCP Microscaling Formats): 0, 1, 2, 3, 4, 6, 8, 12, and the same below 0.
    {128, 129, 130, 131, 132, 134, 136, 140, 128, 127, 126, 125, 124, 122, 120, 116},
};

// A kind of cells that there are kernels for.
template <int STORED_BITS_OF_A_VALUE, int SCALES_OF_AN_OUTPUT, bool HAS_TABLE = false>
struct Cells {
    static constexpr int STORED_BITS = STORED_BITS_OF_A_VALUE, SCALES = SCALES_OF_AN_OUTPUT;
    static constexpr bool BY_TABLE = HAS_TABLE;
    static constexpr int BITS = BY_TABLE ? 8 : STORED_BITS;  // of a value in an operand
    static constexpr int MIDDLE = 1 << (BITS - 1);
    static constexpr int INPUTS = int(GROUP) / SCALES;  // inputs that share a scale
    static constexpr int STEPS = 8 / SCALES;            // steps of two operands, of inputs that share a scale
    static constexpr size_t TILE_BYTES = size_t(STORED_BITS) * 128;
};

struct Layout {
    size_t outputs, inputs;
    int bits;    // of a stored value
    int scales;  // of an output in a cell
    bool has_offsets;
    int table = NO_TABLE;

    OUZEL_INLINE size_t blocks() const { return (outputs + BLOCK - 1) / BLOCK; }
    OUZEL_INLINE size_t groups() const { return (inputs + GROUP - 1) / GROUP; }
    OUZEL_INLINE size_t header_bytes() const { return size_t(scales) * BLOCK * 2 * (has_offsets ? 2 : 1); }
    OUZEL_INLINE size_t tile_bytes() const { return size_t(bits) * 128; }
    OUZEL_INLINE size_t cell_bytes() const { return header_bytes() + 2 * tile_bytes(); }
    OUZEL_INLINE size_t block_bytes() const { return groups() * cell_bytes(); }
    OUZEL_INLINE size_t bytes() const { return blocks() * block_bytes(); }

    // Calls use(cells) with the kind of the cells; returns false if there are no kernels for it.
    template <class Use>
    OUZEL_INLINE bool with_cells(Use&& use) const {
        return with_one_of<Cells<4, 1>, Cells<4, 2>, Cells<4, 4>, Cells<4, 2, true>, Cells<4, 4, true>, Cells<6, 2>, Cells<6, 4>, Cells<8, 1>,
                           Cells<8, 2>>(use);
    }
    OUZEL_INLINE bool is_valid() const {
        return outputs > 0 && outputs <= MOST_OUTPUTS && inputs > 0 && inputs <= MOST_INPUTS && 0 <= table && table < NUM_TABLES &&
               with_cells([](auto) {});
    }

private:
    template <class... Kinds, class Use>
    OUZEL_INLINE bool with_one_of(Use& use) const {
        return ((bits == Kinds::STORED_BITS && scales == Kinds::SCALES && (table != NO_TABLE) == Kinds::BY_TABLE && (use(Kinds()), true)) || ...);
    }
};

struct Matrix {
    Layout layout;
    const uint8_t* cells;

    OUZEL_INLINE const uint8_t* block(size_t number) const { return cells + number * layout.block_bytes(); }
};

}  // namespace ouzel
