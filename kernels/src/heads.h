// Attention of some queries of one head to a part of a context, with vectors of one size.
//
// `V` has the operations of the vectors. M queries are computed together; W lines are read together, so that the additions
// of few queries need not wait for each other.
#pragma once
#include <algorithm>
#include <cmath>

#include "arithmetic.h"
#include "context.h"

namespace ouzel {
namespace {

// Numbers of the cache in f16.
template <class V>
struct Halves {
    static constexpr CacheType TYPE = CacheType::F16;
    static constexpr size_t BYTES = 2;  // of a number
    static constexpr bool HAS_SCALES = false;
    static typename V::Float load(const uint8_t* p) { return V::halves(p); }
};

// Numbers of the cache in u8, with scales and zero points.
template <class V>
struct ScaledBytes {
    static constexpr CacheType TYPE = CacheType::U8;
    static constexpr size_t BYTES = 1;
    static constexpr bool HAS_SCALES = true;
    static typename V::Float load(const uint8_t* p) { return V::bytes(p); }
};

// Numbers of the cache in f32.
template <class V>
struct Floats {
    static constexpr CacheType TYPE = CacheType::F32;
    static constexpr size_t BYTES = 4;
    static constexpr bool HAS_SCALES = false;
    static typename V::Float load(const uint8_t* p) { return V::load_floats(reinterpret_cast<const float*>(p)); }
};

// The scales of the tokens of a block for a line of channels, and offsets: a number is u8 * scale + offset, which f32 represents exactly.
struct Scales {
    alignas(64) float scales[BLOCK_TOKENS], offsets[BLOCK_TOKENS];
};

template <class V>
OUZEL_INLINE void read_scales(const uint8_t* block, size_t channels, size_t line, Scales& to) {
    const uint8_t* const scales = block + channels * BLOCK_TOKENS + line * 2 * BLOCK_TOKENS;
    const uint8_t* const zeros = block + (channels + channels / LINE * 2) * BLOCK_TOKENS + line * BLOCK_TOKENS;
    for (size_t i = 0; i < BLOCK_TOKENS; i += V::LANES) {
        const typename V::Float scale = V::halves(scales + i * 2);
        V::store(to.scales + i, scale), V::store(to.offsets + i, V::times(V::minus(V::zero(), V::bytes(zeros + i)), scale));
    }
}

// Reads keys or values of a block into the first cache: the processor itself foresees no line beyond a page. For the most queries that
// are computed together the arithmetic takes longer than the memory, and the reading would only delay it.
template <class V, class C>
void prefetch_block(const uint8_t* block, size_t channels) {
    const size_t bytes = block_bytes(C::TYPE, channels);
    for (size_t i = 0; i < bytes; i += 64) V::prefetch(block + i);
}

// Some lines of a block of values. Numbers in f16 have no scales.
template <int W>
struct Lines {
    const uint8_t* values[W];
    Scales scales[W];
};

// The lines from `first` on; the last line stands again in the places after it.
template <class V, class C, int W>
OUZEL_INLINE void find_lines(const uint8_t* block, size_t channels, size_t first, Lines<W>& lines) {
    for (size_t w = 0; w < W; w++) {
        const size_t line = std::min(first + w, channels / LINE - 1);
        lines.values[w] = block + line * LINE * C::BYTES;
        if constexpr (C::HAS_SCALES) read_scales<V>(block, channels, line, lines.scales[w]);
    }
}

// sums[m][w] += factors[m][i] * lines[w][i], for i from `begin` to `end`, in this order.
template <class V, class C, int M, int W>
OUZEL_INLINE void add_lines(typename V::Float* sums, const float* factors, const Lines<W>& lines, size_t channels, size_t begin, size_t end) {
    constexpr int N = int(LINE) / V::LANES;
    for (size_t i = begin; i < end; i++) {
        typename V::Float line[W * N];
#pragma GCC unroll 16
        for (int n = 0; n < W * N; n++) {
            line[n] = C::load(lines.values[n / N] + (i * channels + size_t(n % N * V::LANES)) * C::BYTES);
            if constexpr (C::HAS_SCALES) line[n] = V::fused(line[n], V::all(lines.scales[n / N].scales[i]), V::all(lines.scales[n / N].offsets[i]));
        }
#pragma GCC unroll 16
        for (int m = 0; m < M; m++) {
            const typename V::Float factor = V::all(factors[m * WEIGHT_STRIDE + i]);
#pragma GCC unroll 16
            for (int n = 0; n < W * N; n++) sums[m * W * N + n] = V::fused(factor, line[n], sums[m * W * N + n]);
        }
    }
}

// The byte of a block, from the line of G vectors of tokens on, where the vector `number` has 4 channels of some tokens. A vector of tokens
// has four such vectors.
template <class V, class C>
constexpr size_t place_of_vector(size_t channels, size_t number) {
    constexpr size_t VECTORS = 16 / V::LANES;  // vectors that hold 4 channels of 4 tokens
    return (number / VECTORS / 4 * channels * 16 + number / VECTORS % 4 * 32 + number % VECTORS * V::LANES) * C::BYTES;
}

// A line of channels of the keys of G vectors of tokens, which begin at `token`.
template <class V, class C, int G>
struct KeyLine {
    OUZEL_INLINE KeyLine(const uint8_t* block, size_t channels_, size_t token, size_t line)
        : from(block + (token / 16 * channels_ * 16 + token % 16 / 4 * 32 + line * LINE * 16) * C::BYTES), channels(channels_) {
        if constexpr (C::HAS_SCALES) {
            Scales all;
            read_scales<V>(block, channels, line, all);
#pragma GCC unroll 16
            for (size_t i = 0; i < G * 4; i++) {
                const size_t first = token + i * (V::LANES / 4);
                scales[i] = V::each_four_times(all.scales + first), offsets[i] = V::each_four_times(all.offsets + first);
            }
        }
    }
    // The vector `number` of four channels of the line.
    OUZEL_INLINE typename V::Float load(size_t four, size_t number) const {
        const auto loaded = C::load(from + (four / 2 * 128 + four % 2 * 16) * C::BYTES + place_of_vector<V, C>(channels, number));
        if constexpr (C::HAS_SCALES)
            return V::fused(loaded, scales[number], offsets[number]);
        else
            return loaded;
    }

    const uint8_t* from;
    size_t channels;
    typename V::Float scales[C::HAS_SCALES ? G * 4 : 1], offsets[C::HAS_SCALES ? G * 4 : 1];
};

// The same in f32, for several calls of `multiply_keys`.
template <class V, int G>
struct DecodedLine {
    OUZEL_INLINE typename V::Float load(size_t four, size_t number) const { return V::load_floats(from + (four * G * 4 + number) * V::LANES); }

    const float* from;
};

// Writes the products of M queries with the keys of G vectors of tokens; find_line(i) returns a line of the keys. Channel i is added to
// sum i % 4, and these sums are added in pairs.
template <class V, int M, int G, class FindLine>
OUZEL_INLINE void multiply_keys(const float* queries, size_t channels, FindLine find_line, float* products) {
    typename V::Float sums[M * G * 4];
#pragma GCC unroll 64
    for (int i = 0; i < M * G * 4; i++) sums[i] = V::zero();
    for (size_t line = 0; line < channels / LINE; line++) {
        const auto key_line = find_line(line);
        for (size_t i = 0; i < LINE / 4; i++) {
            typename V::Float key[G * 4];
#pragma GCC unroll 16
            for (size_t g = 0; g < G * 4; g++) key[g] = key_line.load(i, g);
#pragma GCC unroll 16
            for (int m = 0; m < M; m++) {
                const typename V::Float query = V::repeat_four(queries + m * QUERY_STRIDE + line * LINE + i * 4);
#pragma GCC unroll 16
                for (int g = 0; g < G * 4; g++) sums[m * G * 4 + g] = V::fused(query, key[g], sums[m * G * 4 + g]);
            }
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

// Writes the products of the queries with the keys of G vectors of tokens, K queries at a time.
template <class V, class C, int M, int K, int G>
void multiply_all(const Queries& queries, const uint8_t* keys, size_t token, float* products) {
    for (int m = 0; m < M; m += K)
        multiply_keys<V, K, G>(queries.rows + m * QUERY_STRIDE, queries.channels,
                               [&](size_t line) { return KeyLine<V, C, G>(keys, queries.channels, token, line); }, products + m * WEIGHT_STRIDE);
}

// The same, with keys that are decoded once for all queries.
template <class V, class C, int M, int K, int G>
void decode_and_multiply_all(const Queries& queries, const uint8_t* keys, size_t token, float* products) {
    constexpr size_t LINE_NUMBERS = LINE * G * V::LANES;
    alignas(64) float decoded[MOST_CHANNELS / LINE * LINE_NUMBERS];
    for (size_t line = 0; line < queries.channels / LINE; line++) {
        const KeyLine<V, C, G> from(keys, queries.channels, token, line);
        for (size_t i = 0; i < LINE / 4; i++)
#pragma GCC unroll 16
            for (size_t g = 0; g < G * 4; g++) V::store(decoded + line * LINE_NUMBERS + (i * G * 4 + g) * V::LANES, from.load(i, g));
    }
    for (int m = 0; m < M; m += K)
        multiply_keys<V, K, G>(queries.rows + m * QUERY_STRIDE, queries.channels,
                               [&](size_t line) { return DecodedLine<V, G>{decoded + line * LINE_NUMBERS}; }, products + m * WEIGHT_STRIDE);
}

// Writes the sums of the values by their weights for W lines of channels; lines after the last one are not read.
template <class V, class C, int M, int W>
void add_values(const float* weights, const Part& part, size_t first, size_t begin, size_t end, size_t channels, float* to) {
    constexpr int N = int(LINE) / V::LANES;
    typename V::Float sums[M * W * N];
#pragma GCC unroll 64
    for (int i = 0; i < M * W * N; i++) sums[i] = V::zero();
    for (size_t block = begin / BLOCK_TOKENS; block * BLOCK_TOKENS < end; block++) {
        const size_t token = block * BLOCK_TOKENS;
        Lines<W> lines;
        find_lines<V, C, W>(part.values[block], channels, first, lines);
        if (M < MOST_QUERIES && first == 0 && (block + 1) * BLOCK_TOKENS < end) prefetch_block<V, C>(part.values[block + 1], channels);
        add_lines<V, C, M, W>(sums, weights + token, lines, channels, begin > token ? begin - token : 0,
                              end - token < BLOCK_TOKENS ? end - token : BLOCK_TOKENS);
    }
#pragma GCC unroll 8
    for (int w = 0; w < W; w++) {
        if ((first + w) * LINE >= channels) break;
#pragma GCC unroll 64
        for (int i = 0; i < M * N; i++) V::store(to + i / N * channels + (first + w) * LINE + i % N * V::LANES, sums[(i / N * W + w) * N + i % N]);
    }
}

// The products [count] of a query become softcap * tanh(product / softcap).
template <class V>
void cap_products(float* row, size_t count, float softcap) {
    const typename V::Float inverse = V::all(2 / softcap), cap = V::all(softcap);
    for (size_t i = 0; i < count; i += V::LANES)
        V::store(row + i, V::times(cap, tanh_of_half<V>(V::times(V::load_floats(row + i), inverse))));
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

constexpr int DECODED_FROM = 6;  // queries: so many have no registers left for scales

// M queries; K of them and G vectors of tokens are multiplied together, and W lines of values.
template <class V, class C, int M, int K, int G, int W>
void attend(const Queries& queries, const Part& part, float* weights, const Attended& to) {
    constexpr size_t TOKENS = G * V::LANES;
    size_t begin = part.begins[0], end = part.ends[0];
    for (int m = 1; m < M; m++) begin = part.begins[m] < begin ? part.begins[m] : begin, end = part.ends[m] > end ? part.ends[m] : end;
    for (size_t token = begin / TOKENS * TOKENS; token < end; token += TOKENS) {
        if (const size_t next = token / BLOCK_TOKENS + 1; M < MOST_QUERIES && token % BLOCK_TOKENS == 0)
            prefetch_block<V, C>(next < part.blocks ? part.keys[next] : part.values[begin / BLOCK_TOKENS], queries.channels);
        const uint8_t* keys = part.keys[token / BLOCK_TOKENS];
        if constexpr (C::HAS_SCALES && M >= DECODED_FROM)
            decode_and_multiply_all<V, C, M, K, G>(queries, keys, token % BLOCK_TOKENS, weights + token);
        else
            multiply_all<V, C, M, K, G>(queries, keys, token % BLOCK_TOKENS, weights + token);
    }
    const size_t count = part.blocks * BLOCK_TOKENS;
    for (int m = 0; m < M; m++) {
        float* const row = weights + m * WEIGHT_STRIDE;
        if (queries.softcap > 0) cap_products<V>(row, count, queries.softcap);
        make_weights<V>(row, count, part.begins[m], part.ends[m], to.sums[m], to.largest[m]);
    }
    const size_t num_lines = queries.channels / LINE;
    for (size_t first = 0; first < num_lines;) {
        if (W > 1 && num_lines - first > 1)
            add_values<V, C, M, W>(weights, part, first, begin, end, queries.channels, to.values), first += W;
        else
            add_values<V, C, M, 1>(weights, part, first, begin, end, queries.channels, to.values), first++;
    }
}

// The numbers of queries that are computed together, and the lines that are read together, as registers allow.
template <class V, class C>
void attend_cache(const Queries& queries, const Part& part, float* weights, const Attended& to) {
    if constexpr (V::LANES == 16) switch (queries.count) {
            case 1: return attend<V, C, 1, 1, 2, 4>(queries, part, weights, to);
            case 2: return attend<V, C, 2, 2, 1, 4>(queries, part, weights, to);
            case 3: return attend<V, C, 3, 3, 1, 2>(queries, part, weights, to);
            case 4: return attend<V, C, 4, 4, 1, 2>(queries, part, weights, to);
            case 6: return attend<V, C, 6, 6, 1, 2>(queries, part, weights, to);
            case 8: return attend<V, C, 8, 4, 1, 1>(queries, part, weights, to);
            default: return attend<V, C, MOST_QUERIES, 6, 1, 1>(queries, part, weights, to);
        }
    switch (queries.count) {
        case 1: return attend<V, C, 1, 1, 1, 2>(queries, part, weights, to);
        case 2: return attend<V, C, 2, 2, 1, 1>(queries, part, weights, to);
        default: return attend<V, C, 3, 3, 1, 1>(queries, part, weights, to);
    }
}

template <class V>
void attend_any(const Queries& queries, const Part& part, float* weights, const Attended& to) {
    switch (queries.cache_type) {
        case CacheType::F16: return attend_cache<V, Halves<V>>(queries, part, weights, to);
        case CacheType::U8: return attend_cache<V, ScaledBytes<V>>(queries, part, weights, to);
        case CacheType::F32: return attend_cache<V, Floats<V>>(queries, part, weights, to);
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
