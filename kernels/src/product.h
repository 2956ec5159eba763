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

// An RMS norm of whole rows; there is none if the weight [columns] is nullptr.
struct RowNorm {
    const float* weight = nullptr;
    float epsilon = 0;
};

// Rows [count][inputs], and the norm before the products.
struct Source {
    const float* rows;
    size_t count;
    RowNorm norm = {};
};

// The heads of the first products, of which some outputs are turned by the angles of their rows: cos and sin are [count][turned / 2].
struct Heads {
    size_t size = 0;    // outputs of a head, a multiple of 32
    size_t turned = 0;  // its first outputs, which are turned; an even number
    const float *cos = nullptr, *sin = nullptr;
    std::vector<const float*> norm_weights;  // for each of these products: of an RMS norm of each head, or nullptr
    float epsilon = 0;
};

// What becomes of the products: the first ones are normalised over whole rows, the residual is added to the first one, then heads are
// turned. A product has no norm both of its rows and of its heads.
struct Results {
    const float* residual = nullptr;  // [count][outputs of the first product]
    std::vector<RowNorm> norms = {};
    Heads heads = {};
};

// to[i][count][outputs of i] = rows times the transpose of each matrix. The matrices have equally many inputs. `may_be_wide`: many rows
// may be multiplied in bf16.
void multiply(const Level& level, const Source& source, const std::vector<Product>& products, const std::vector<float*>& to,
              const Results& results, bool may_be_wide);

// y = x + result_norm(down(activation(gate(norm(x))) * up(norm(x)))), where x are the rows, or residual + projected_norm(projection(rows)).
struct FeedForward {
    bool has_projection;
    Product projection, gate, up, down;
    RowNorm projected_norm, norm, result_norm;
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
