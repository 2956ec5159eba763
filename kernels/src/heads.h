// Attention of some queries of one head to a part of a context, with vectors of one size.
//
// `V` has the operations of the vectors. M queries are computed together; W lines are read together, so that the additions
// of few queries need not wait for each other.
#pragma once
#include <cmath>

#include "arithmetic.h"
#include "context.h"

namespace ouzel {
namespace {

// Reads keys or values of a block into the first cache: the processor itself foresees no line beyond a page. For the most queries that
// are computed together the arithmetic takes longer than the memory, and the reading would only delay it.
template <class V>
void prefetch_block(const uint16_t* block, size_t channels) {
    for (size_t i = 0; i < channels * BLOCK_TOKENS; i += LINE) V::prefetch(reinterpret_cast<const uint8_t*>(block + i));
}

// sums[m][w] += factors[m][i] * lines[w][i], for i from `begin` to `end`, in this order.
template <class V, int M, int W>
OUZEL_INLINE void add_lines(typename V::Float* sums, const float* factors, const uint16_t* const* lines, size_t stride, size_t begin, size_t end) {
    constexpr int N = int(LINE) / V::LANES;
    for (size_t i = begin; i < end; i++) {
        typename V::Float line[W * N];
#pragma GCC unroll 16
        for (int n = 0; n < W * N; n++) line[n] = V::halves(reinterpret_cast<const uint8_t*>(lines[n / N] + i * stride) + n % N * V::LANES * 2);
#pragma GCC unroll 16
        for (int m = 0; m < M; m++) {
            const typename V::Float factor = V::all(factors[m * WEIGHT_STRIDE + i]);
#pragma GCC unroll 16
            for (int n = 0; n < W * N; n++) sums[m * W * N + n] = V::fused(factor, line[n], sums[m * W * N + n]);
        }
    }
}

// Writes the products of M queries with the keys of G vectors of tokens, which begin at a token of the block. Channel i is added to
// sum i % 4, and these sums are added in pairs.
template <class V, int M, int G>
void multiply_keys(const float* queries, size_t channels, const uint16_t* keys, size_t token, float* products) {
    constexpr int VECTORS = 16 / V::LANES;  // vectors that hold 4 channels of 4 tokens
    typename V::Float sums[M * G * 4];
#pragma GCC unroll 64
    for (int i = 0; i < M * G * 4; i++) sums[i] = V::zero();
    // Bytes of 16 tokens, of their first 8 channels, and of 4 tokens in these.
    const size_t half = channels * 32, step = 256, four = 64;
    const uint8_t* from = reinterpret_cast<const uint8_t*>(keys) + token / 16 * half + token % 16 / 4 * four;
    for (size_t i = 0; i < channels; i += 4, from += i % 8 ? 32 : step - 32) {
        typename V::Float key[G * 4];
#pragma GCC unroll 16
        for (int g = 0; g < G * 4; g++) key[g] = V::halves(from + g / VECTORS / 4 * half + g / VECTORS % 4 * four + g % VECTORS * 16);
#pragma GCC unroll 16
        for (int m = 0; m < M; m++) {
            const typename V::Float query = V::repeat_four(queries + m * QUERY_STRIDE + i);
#pragma GCC unroll 16
            for (int g = 0; g < G * 4; g++) sums[m * G * 4 + g] = V::fused(query, key[g], sums[m * G * 4 + g]);
        }
    }
#pragma GCC unroll 16
    for (int m = 0; m < M; m++) {
#pragma GCC unroll 4
        for (int g = 0; g < G; g++) {
            const typename V::Float* four = sums + (m * G + g) * 4;
            V::store(products + m * WEIGHT_STRIDE + g * V::LANES, add_fours<V>(four[0], four[1], four[2], four[3]));
        }
    }
}

// Writes the sums of the values by their weights for W lines of channels; lines after the last one are not read.
template <class V, int M, int W>
void add_values(const float* weights, const Part& part, size_t first, size_t num_lines, size_t begin, size_t end, size_t channels, float* to) {
    constexpr int N = int(LINE) / V::LANES;
    typename V::Float sums[M * W * N];
#pragma GCC unroll 64
    for (int i = 0; i < M * W * N; i++) sums[i] = V::zero();
    for (size_t block = begin / BLOCK_TOKENS; block * BLOCK_TOKENS < end; block++) {
        const size_t token = block * BLOCK_TOKENS;
        const uint16_t* lines[W];
        for (int w = 0; w < W; w++) lines[w] = part.values[block] + (first + w < num_lines ? first + w : num_lines - 1) * LINE;
        if (M < MOST_QUERIES && first == 0 && (block + 1) * BLOCK_TOKENS < end) prefetch_block<V>(part.values[block + 1], channels);
        add_lines<V, M, W>(sums, weights + token, lines, channels, begin > token ? begin - token : 0,
                            end - token < BLOCK_TOKENS ? end - token : BLOCK_TOKENS);
    }
#pragma GCC unroll 8
    for (int w = 0; w < W; w++) {
        if (first + w >= num_lines) break;
#pragma GCC unroll 64
        for (int i = 0; i < M * N; i++) V::store(to + i / N * channels + (first + w) * LINE + i % N * V::LANES, sums[(i / N * W + w) * N + i % N]);
    }
}

// Makes the products [count] of a query into weights: exp(product - largest) for the tokens from `begin` to `end`, 0 for others.
template <class V>
void make_weights(float* row, size_t count, size_t begin, size_t end, float& sum, float& largest) {
    constexpr int N = int(LINE) / V::LANES;
    for (size_t i = 0; i < begin; i++) row[i] = -INFINITY;
    for (size_t i = end; i < count; i++) row[i] = -INFINITY;
    typename V::Float most = V::all(-INFINITY);
    for (size_t i = 0; i < count; i += V::LANES) most = V::largest(V::load_floats(row + i), most);
    alignas(64) float lanes[LINE];
    V::store(lanes, most);
    largest = lanes[0];
    for (int i = 1; i < V::LANES; i++) largest = lanes[i] > largest ? lanes[i] : largest;
    const typename V::Float all_largest = V::all(largest);
    for (size_t i = 0; i < count; i += V::LANES) V::store(row + i, exponential<V>(V::minus(V::load_floats(row + i), all_largest)));
    for (size_t i = 0; i < begin; i++) row[i] = 0;
    for (size_t i = end; i < count; i++) row[i] = 0;
    typename V::Float sums[N];
    for (int n = 0; n < N; n++) sums[n] = V::zero();
    for (size_t i = 0; i < count; i += LINE)
        for (int n = 0; n < N; n++) sums[n] = V::plus(sums[n], V::load_floats(row + i + n * V::LANES));
    for (int n = 0; n < N; n++) V::store(lanes + n * V::LANES, sums[n]);
    sum = add_in_halves<LINE>(lanes);
}

// M queries; K of them and G vectors of tokens are multiplied together, and W lines of values.
template <class V, int M, int K, int G, int W>
void attend(const Queries& queries, const Part& part, float* weights, const Attended& to) {
    constexpr size_t TOKENS = G * V::LANES;
    size_t begin = part.begins[0], end = part.ends[0];
    for (int m = 1; m < M; m++) begin = part.begins[m] < begin ? part.begins[m] : begin, end = part.ends[m] > end ? part.ends[m] : end;
    for (size_t token = begin / TOKENS * TOKENS; token < end; token += TOKENS) {
        if (const size_t next = token / BLOCK_TOKENS + 1; M < MOST_QUERIES && token % BLOCK_TOKENS == 0)
            prefetch_block<V>(next < part.blocks ? part.keys[next] : part.values[begin / BLOCK_TOKENS], queries.channels);
        for (int m = 0; m < M; m += K)
            multiply_keys<V, K, G>(queries.rows + m * QUERY_STRIDE, queries.channels, part.keys[token / BLOCK_TOKENS], token % BLOCK_TOKENS,
                                   weights + m * WEIGHT_STRIDE + token);
    }
    for (int m = 0; m < M; m++)
        make_weights<V>(weights + m * WEIGHT_STRIDE, part.blocks * BLOCK_TOKENS, part.begins[m], part.ends[m], to.sums[m], to.largest[m]);
    const size_t num_lines = queries.channels / LINE;
    for (size_t first = 0; first < num_lines;) {
        if (W > 1 && num_lines - first > 1)
            add_values<V, M, W>(weights, part, first, num_lines, begin, end, queries.channels, to.values), first += W;
        else
            add_values<V, M, 1>(weights, part, first, num_lines, begin, end, queries.channels, to.values), first++;
    }
}

// The numbers of queries that are computed together, and the lines that are read together, as registers allow.
template <class V>
void attend_any(const Queries& queries, const Part& part, float* weights, const Attended& to) {
    if constexpr (V::LANES == 16) switch (queries.count) {
            case 1: return attend<V, 1, 1, 2, 4>(queries, part, weights, to);
            case 2: return attend<V, 2, 2, 1, 4>(queries, part, weights, to);
            case 3: return attend<V, 3, 3, 1, 2>(queries, part, weights, to);
            case 4: return attend<V, 4, 4, 1, 2>(queries, part, weights, to);
            case 6: return attend<V, 6, 6, 1, 2>(queries, part, weights, to);
            case 8: return attend<V, 8, 4, 1, 1>(queries, part, weights, to);
            default: return attend<V, MOST_QUERIES, 6, 1, 1>(queries, part, weights, to);
        }
    switch (queries.count) {
        case 1: return attend<V, 1, 1, 1, 2>(queries, part, weights, to);
        case 2: return attend<V, 2, 2, 1, 1>(queries, part, weights, to);
        default: return attend<V, 3, 3, 1, 1>(queries, part, weights, to);
    }
}

constexpr size_t QUERY_CHUNKS_256[] = {1, 2, 3}, QUERY_CHUNKS_512[] = {1, 2, 3, 4, 6, 8, MOST_QUERIES};

template <class V>
float exponential_of(float x) {
    alignas(64) float lanes[LINE];
    V::store(lanes, exponential<V>(V::all(x)));
    return lanes[0];
}

// Adds the result of a later part to the result of the parts before it.
template <class V>
void join_parts(const Attended& to, const Attended& part, size_t count, size_t channels) {
    for (size_t m = 0; m < count; m++) {
        if (part.sums[m] == 0) continue;
        const bool is_first = to.sums[m] == 0;
        const float largest = is_first || part.largest[m] > to.largest[m] ? part.largest[m] : to.largest[m];
        const float own = is_first ? 0.f : exponential_of<V>(to.largest[m] - largest), other = exponential_of<V>(part.largest[m] - largest);
        const typename V::Float own_factor = V::all(own), other_factor = V::all(other);
        for (size_t i = m * channels; i < (m + 1) * channels; i += V::LANES) {
            const typename V::Float value = V::times(V::load_floats(part.values + i), other_factor);
            V::store(to.values + i, is_first ? value : V::fused(V::load_floats(to.values + i), own_factor, value));
        }
        to.sums[m] = __builtin_fmaf(to.sums[m], own, part.sums[m] * other);
        to.largest[m] = largest;
    }
}

// Writes values / sum for a query. A sink is a product that takes a share of the weights and has no value; it is nullptr if there is none.
template <class V>
void divide_by_sum(const Attended& from, size_t query, size_t channels, const float* sink, float* to) {
    float factor = 1, sum = from.sums[query];
    if (sink) {
        const float largest = *sink > from.largest[query] ? *sink : from.largest[query];
        factor = exponential_of<V>(from.largest[query] - largest);
        sum = __builtin_fmaf(sum, factor, exponential_of<V>(*sink - largest));
    }
    const typename V::Float by_sum = V::all(factor / sum);
    const float* values = from.values + query * channels;
    for (size_t i = 0; i < channels; i += V::LANES) V::store(to + i, V::times(V::load_floats(values + i), by_sum));
}

}  // namespace
}  // namespace ouzel
