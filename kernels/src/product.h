// Products of rows of floats with matrices of few-bit weights, alone, in the feed-forward half of a layer, and in mixtures of experts.
#pragma once
#include <vector>

#include "level.h"

namespace ouzel {

struct Product {
    Matrix matrix;
    const float* factors;  // [outputs]
    const float* bias;     // [outputs], or nullptr
};

// Rows [count][inputs], with an RMS norm if there is a weight [inputs].
struct Source {
    const float* rows;
    size_t count;
    const float* norm_weight = nullptr;
    float epsilon = 0;
};

// The heads of the first products, which are turned by the angles of their rows: cos and sin are [count][size / 2].
struct Heads {
    size_t size = 0;  // outputs of a head, a multiple of 32
    const float *cos = nullptr, *sin = nullptr;
    std::vector<const float*> norm_weights;  // for each of these products: of an RMS norm of each head, or nullptr
    float epsilon = 0;
};

// to[i][count][outputs of i] = rows times the transpose of each matrix. The matrices have equally many inputs. The
// residual, or nullptr, is added to the first product. `may_be_wide`: many rows may be multiplied in bf16.
void multiply(const Level& level, const Source& source, const std::vector<Product>& products, const std::vector<float*>& to,
              const float* residual, const Heads& heads, bool may_be_wide);

// y = x + down(activation(gate(norm(x))) * up(norm(x))), where x are the rows, or residual + projection(rows).
struct FeedForward {
    bool has_projection;
    Product projection, gate, up, down;
    const float* norm_weight;  // nullptr: no norm
    float epsilon;
    Gate activation;
    bool may_be_wide;
};

// to[count][outputs of down]; the residual is nullptr without a projection.
void feed_forward(const Level& level, const FeedForward& layer, const float* rows, const float* residual, size_t count, float* to);

// Mixtures of experts: for each row the sum over its experts of weight * down(activation(gate(x)) * up(x)). The matrices of all
// experts lie one below the other: of each expert the rows of `gate`, then the rows of `up`, in one matrix. The inner size and the
// outputs of `down` are multiples of 32.
struct Experts {
    size_t num_experts;
    Product gate_up, down;
    Gate activation;
    bool may_be_wide;

    size_t inner() const { return down.matrix.layout.inputs; }
    size_t outputs() const { return down.matrix.layout.outputs / num_experts; }
};

// The experts of each row, [count][per_row], and their weights; per_row is at least 1.
struct Choices {
    size_t per_row;
    const int32_t* experts;
    const float* weights;
};

// to[count][outputs of an expert]; a residual of that shape, or nullptr, is added. Throws std::out_of_range for the number of an expert
// that there is not.
void mix_experts(const Level& level, const Experts& experts, const Choices& choices, const float* rows, const float* residual, size_t count,
                 float* to);

// Decodes an output's weights: to[inputs].
void decode_output(const Matrix& matrix, const float* factors, size_t output, float* to);

}  // namespace ouzel
