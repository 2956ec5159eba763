// The layout of a matrix of 4-bit weights: the same bytes serve one row of activations and thousands.
//
// A matrix of N outputs and K inputs is stored as cells of 32 outputs x 64 inputs; N and K are padded with zeros. The
// cells of 32 outputs (a block) lie one after the other, so that a thread reads its blocks from begin to end. A cell has
//
//   scales    f16 [S][32]   one scale for each output and each 64 / S inputs; S is 1 or 2
//   offsets   f16 [S][32]   only in matrices with offsets
//   values    u8 [2][8][64] two tiles of 16 outputs, each of 8 vectors of 16 outputs x 4 bytes
//
// Byte b of output j in vector v has the value of input 8 v + b in its low half, and of input 8 v + 4 + b in its high
// half. A value is stored plus 8. With the factor of its output (a power of two, which keeps scales within f16) a weight is
//
//   w = ((value - 8) * scale + offset) * factor
//
// The low halves of a vector, then the high halves, are operands of VPDPBUSD, and rows of the second operand of
// TDPBSSD: 4 inputs of 16 outputs.
#pragma once
#include <cstddef>
#include <cstdint>

// Files that are compiled for different instructions include this one: a function that is not inlined would exist once, with
// the instructions of any of them.
#define OUZEL_INLINE __attribute__((always_inline)) inline

namespace ouzel {

constexpr size_t BLOCK = 32;        // outputs of a cell
constexpr size_t GROUP = 64;        // inputs of a cell
constexpr size_t TILE_BYTES = 512;  // half of a cell's values: 16 outputs x 64 inputs
constexpr size_t VALUES_BYTES = 2 * TILE_BYTES;
constexpr size_t MOST_OUTPUTS = size_t(1) << 30, MOST_INPUTS = size_t(1) << 24;

struct Layout {
    size_t outputs, inputs;
    int scales;  // scales of an output in a cell: 1 or 2
    bool has_offsets;

    OUZEL_INLINE size_t blocks() const { return (outputs + BLOCK - 1) / BLOCK; }
    OUZEL_INLINE size_t groups() const { return (inputs + GROUP - 1) / GROUP; }
    OUZEL_INLINE size_t header_bytes() const { return size_t(scales) * BLOCK * 2 * (has_offsets ? 2 : 1); }
    OUZEL_INLINE size_t cell_bytes() const { return header_bytes() + VALUES_BYTES; }
    OUZEL_INLINE size_t block_bytes() const { return groups() * cell_bytes(); }
    OUZEL_INLINE size_t bytes() const { return blocks() * block_bytes(); }
    OUZEL_INLINE bool is_valid() const {
        return outputs > 0 && outputs <= MOST_OUTPUTS && inputs > 0 && inputs <= MOST_INPUTS && (scales == 1 || scales == 2);
    }
};

struct Matrix {
    Layout layout;
    const uint8_t* cells;

    OUZEL_INLINE const uint8_t* block(size_t number) const { return cells + number * layout.block_bytes(); }
};

}  // namespace ouzel
