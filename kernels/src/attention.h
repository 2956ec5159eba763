// Attention over the KV cache, in blocks of 32 tokens (context.h).
#pragma once
#include "level.h"

namespace ouzel {

struct Attention {
    size_t num_heads, num_kv_heads, channels;  // channels of a head, a multiple of 32
    float scale;                               // factor of the products of queries and keys
    float softcap;                             // products become softcap * tanh(product / softcap); 0: they stay
    size_t window;                             // tokens that a token sees, itself included; 0: all
    const float* sinks;                        // [num_heads], or nullptr
    CacheType cache_type;
    bool writes_cache;                         // false: keys and values are not written, as they are there already
};

// The rows of sequences: of sequence s the rows [begins[s], begins[s + 1]), after past_lens[s] tokens of its context. Its blocks are
// block_ids[block_begins[s]] and so on.
struct Sequences {
    size_t count;
    const int32_t *begins, *past_lens, *block_ids, *block_begins;
};

// The cache of a layer: [num_blocks][num_kv_heads] blocks of keys, and of values.
struct Cache {
    size_t num_blocks;
    uint8_t *keys, *values;
};

// Queries [num_rows][num_heads][channels], keys and values [num_rows][num_kv_heads][channels].
// Two-way tokens follow each other in a context, and see each other, also later ones and beyond the window: two_way_begins[num_rows] has the
// number in its context of the first of them for a row that is one, -1 for other rows. nullptr: there are none.
struct AttentionRows {
    size_t num_rows;
    const float *queries, *keys, *values;
    const int32_t* two_way_begins = nullptr;
};

// to[num_rows][num_heads][channels]; rows of no sequence are set to 0. Throws std::out_of_range for numbers of rows, tokens or blocks
// that do not exist, and for begins of two-way tokens that do not follow each other.
void attend(const Level& level, const Attention& attention, const Sequences& sequences, const Cache& cache, const AttentionRows& rows,
            float* to);

}  // namespace ouzel
