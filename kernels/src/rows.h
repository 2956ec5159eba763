// Rows of activations, quantised to int8 in the groups in which the matrix has scales (16, 32 or 64 inputs), in the order in which
// the kernels read them.
//
// Rows are divided into chunks; the groups of a chunk's rows lie beside each other: values[chunk][group][row][64]. A
// chunk that is not full has rows of zeros at its end.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <new>

#include "cells.h"

namespace ouzel {

// An array at an address that is a multiple of 64. It grows, and its contents are lost when it grows.
template <class T>
class Buffer {
public:
    Buffer() = default;
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() { std::free(data_); }
    OUZEL_INLINE T* data() { return data_; }
    OUZEL_INLINE const T* data() const { return data_; }
    // Returns memory for at least `count` elements.
    T* reserve(size_t count) {
        if (count <= count_) return data_;
        std::free(data_);
        data_ = nullptr, count_ = 0;
        void* memory = std::aligned_alloc(64, (count * sizeof(T) + 63) & ~size_t(63));
        if (!memory) throw std::bad_alloc();
        count_ = count;
        return data_ = static_cast<T*>(memory);
    }

private:
    T* data_ = nullptr;
    size_t count_ = 0;
};

struct Rows {
    size_t count = 0, inputs = 0, groups = 0;
    size_t chunk = 1;   // rows in a chunk
    size_t chunks = 0;
    int scales = 1;     // scales of an output in a cell of the matrix
    bool is_wide = false;  // rows are kept in bf16, in tiles of 16 rows x 32 inputs: wide[chunk][2 * groups][16][32]

    Buffer<int8_t> values;
    Buffer<float> scale;        // [chunk][group][row][scales]
    Buffer<int32_t> minus_sum;  // minus the sum of the values: [chunk][group][row][scales]
    Buffer<float> weighted;     // the sum of the values times their scale: [chunk][group][row][scales]
    Buffer<uint16_t> wide;

    // The place of a row's group, counted in groups.
    OUZEL_INLINE size_t at(size_t row, size_t group) const { return (row / chunk * groups + group) * chunk + row % chunk; }
    OUZEL_INLINE size_t wide_at(size_t row, size_t group) const { return ((row / 16 * groups + group) * 2 * 16 + row % 16) * 32; }

    // Makes room for rows of a product with the matrix, and sets the rows after the last one to zero.
    void resize(size_t num_rows, const Layout& layout, size_t rows_in_chunk, bool in_bf16);
};

// Memory of this thread for the sums of rows in bf16; its contents are lost when it grows.
float* wide_sums(size_t count);

}  // namespace ouzel
