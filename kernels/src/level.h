// A level: the kernels for one set of instructions. All levels give the same bits, except rows in bf16.
#pragma once
#include "cells.h"
#include "context.h"
#include "rows.h"

namespace ouzel {

// Takes the sums of a block: values[num_rows][32], without the factors of the outputs.
class Sink {
public:
    virtual void take(size_t block, size_t first_row, size_t num_rows, const float* values) = 0;

protected:
    ~Sink() = default;
};

// A gated unit: the activation x * sigmoid(x * (linear + cubic * x^2)) of the gate (silu, and gelu with tanh or as x * sigmoid(1.702 x)),
// times up + up_offset. First the gate is cut to at most `limit`, and up to [-limit, limit].
struct Gate {
    float linear, cubic;
    float limit = __builtin_inff(), up_offset = 0;
};

struct Level {
    const char* name;
    bool (*is_supported)();
    // Rows in a chunk for a product of this many rows.
    size_t (*chunk)(size_t num_rows);
    // The smallest number of rows that are kept in bf16; 0: rows are always quantised.
    size_t wide_from;
    // Quantises a row of `rows.inputs` numbers, or rounds it to bf16 if the rows are wide.
    void (*put_row)(Rows& rows, size_t row, const float* from);
    // The same of the numbers x / sqrt(mean(x^2) + epsilon) * weight.
    void (*put_normed_row)(Rows& rows, size_t row, const float* from, const float* weight, float epsilon);
    // The row becomes x / sqrt(mean(x^2) + epsilon) * weight, plus the residual [size] if there is one.
    void (*normalise_row)(float* row, size_t size, const float* weight, float epsilon, const float* residual);
    // The same as `put_row` of the 64 numbers that a gated unit makes of a row. Overwrites `gate`.
    void (*put_gated_group)(Rows& rows, size_t row, size_t group, float* gate, const float* up, Gate function);
    // Normalises a head of `size` numbers if there is a weight (as `put_normed_row`), then turns its first `turned` numbers by angles:
    // with the halves a and b of these, a becomes a * cos - b * sin, and b becomes b * cos + a * sin.
    void (*turn_head)(float* head, size_t size, size_t turned, const float* weight, float epsilon, const float* cos, const float* sin);
    // Multiplies all rows by some blocks of the matrix.
    void (*multiply)(const Matrix& matrix, size_t first_block, size_t num_blocks, const Rows& rows, Sink& sink);
    // Queries that are computed together, for this many queries of a head.
    size_t (*query_chunk)(size_t num_queries);
    // Attention of as many queries as a chunk has to a part of their context. `weights` is memory for MOST_QUERIES rows.
    void (*attend)(const Queries& queries, const Part& part, float* weights, const Attended& to);
    // Adds the result of a later part to the result of the parts before it.
    void (*join_parts)(const Attended& to, const Attended& part, size_t count, size_t channels);
    // Writes the values of a query divided by the sum of its weights. A sink, or nullptr, is a product that takes a share of the
    // weights and has no value.
    void (*divide_by_sum)(const Attended& from, size_t query, size_t channels, const float* sink, float* to);
    // Ends the work of a thread: gives its tiles back.
    void (*finish)();
};

// The levels of this library, the best first.
extern const Level AMX, AVX512_VNNI, AVX_VNNI, AVX2, EMULATED_AMX;
constexpr const Level* LEVELS[] = {&AMX, &AVX512_VNNI, &AVX_VNNI, &AVX2};

// The best level that this processor supports, or the level that OUZEL_KERNELS_LEVEL names; nullptr if there is none.
const Level* find_level();
// The level with this name if the processor supports it; nullptr otherwise.
const Level* find_level(const char* name);

}  // namespace ouzel
