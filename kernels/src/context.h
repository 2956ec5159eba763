// The KV cache as the attention reads it: blocks of 32 tokens of one head, in f16, u8 or f32.
//
//   keys    [2 halves][channels / 8][4][2][4 tokens][4 channels]: a half has 16 tokens
//   values  [32 tokens][channels]
//
// After numbers in u8 follow, for each line of 32 channels of a token, a scale and a zero point: a number is scale * (u8 - zero point).
//
//   scales       [channels / 32][32 tokens] in f16
//   zero points  [channels / 32][32 tokens] in u8
//
// A vector of keys holds 4 channels of several tokens, so that few additions make a product of it, and a token is written
// to few lines of memory. A head has a multiple of 32 channels. A block of the cache holds the blocks of its heads, one after the
// other. A token is rounded by itself, so that its numbers do not depend on later tokens of its block.
#pragma once
#include <cstddef>
#include <cstdint>

#include "cells.h"

namespace ouzel {

constexpr size_t LINE = 32;          // numbers of a line, which have a scale and a zero point in common
constexpr size_t BLOCK_TOKENS = 32;  // tokens of a block
// A context is divided at multiples of 256 tokens; each part has a softmax of its own, and parts are joined in order. So the
// bits do not depend on the number of queries, rows or threads.
constexpr size_t PART_BLOCKS = 8;
constexpr size_t PART_TOKENS = PART_BLOCKS * BLOCK_TOKENS;
constexpr size_t MOST_CHANNELS = 512;  // of a head
constexpr int MOST_QUERIES = 12;     // queries that are computed together
// Numbers from one row of queries, or of weights, to the next; 64 bytes more than a power of two, so that rows lie in different
// sets of the first cache.
constexpr size_t QUERY_STRIDE = MOST_CHANNELS + 16, WEIGHT_STRIDE = PART_TOKENS + 16;

enum class CacheType { F16, U8, F32 };

// Bytes of a block of one head, of keys or of values.
constexpr size_t block_bytes(CacheType type, size_t channels) {
    if (type == CacheType::U8) return BLOCK_TOKENS * (channels + channels / LINE * 3);
    return BLOCK_TOKENS * channels * (type == CacheType::F16 ? 2 : 4);
}

// A part of the context of a sequence, of one head of keys and values.
struct Part {
    size_t blocks;
    const uint8_t *keys[PART_BLOCKS], *values[PART_BLOCKS];
    // The tokens of the part that each query sees: [begins, ends).
    size_t begins[MOST_QUERIES], ends[MOST_QUERIES];
};

// Queries [count][channels], and the result of a part for them: values [count][channels], the sum of their weights, and the
// largest product; weights are exp(product - largest). A query that sees no token has a sum of 0. With a softcap a product becomes
// softcap * tanh(product / softcap) first.
struct Queries {
    size_t count, channels;
    float softcap;  // 0: products stay
    CacheType cache_type;
    const float* rows;  // of QUERY_STRIDE
};
struct Attended {
    float *values, *sums, *largest;
};

}  // namespace ouzel
