// Products of rows of floats with a matrix of 4-bit weights, and rows of such a matrix.
#pragma once
#include "level.h"

namespace ouzel {

struct Product {
    Matrix matrix;
    const float* factors;  // [outputs]
    const float* bias;     // [outputs], or nullptr
    bool may_be_wide;      // many rows may be multiplied in bf16
};

// to[num_rows][outputs] = from[num_rows][inputs] times the transpose of the matrix.
void multiply(const Level& level, const Product& product, const float* from, size_t num_rows, float* to);

// Decodes an output's weights: to[inputs].
void decode_output(const Matrix& matrix, const float* factors, size_t output, float* to);

}  // namespace ouzel
