// Functions for Python's ctypes: the level in use, and products and attention without a graph, for tests.
#include <cstring>
#include <exception>
#include <stdexcept>

#include "attention.h"
#include "product.h"

using namespace ouzel;

#define EXPORTED extern "C" __attribute__((visibility("default")))

// The name of the level in use; empty if this processor has none.
EXPORTED const char* ouzel_kernels_level() {
    const Level* level = find_level();
    return level ? level->name : "";
}

// Whether this processor supports the level.
EXPORTED int ouzel_kernels_supports(const char* name) { return find_level(name) != nullptr; }

// The bytes of a matrix, 0 for sizes that are not allowed.
EXPORTED size_t ouzel_kernels_bytes(size_t outputs, size_t inputs, int bits, int scales, int has_offsets, int table) {
    const Layout layout{outputs, inputs, bits, scales, has_offsets != 0, table};
    return layout.is_valid() ? layout.bytes() : 0;
}

// Multiplies rows by a matrix on one level. Returns 0; 1: unknown level, 2: wrong sizes, 3: no memory.
EXPORTED int ouzel_kernels_multiply(const char* level_name, size_t outputs, size_t inputs, int bits, int scales, int has_offsets, int table,
                                    const uint8_t* cells, size_t num_bytes, const float* factors, const float* bias, const float* rows,
                                    size_t num_rows, int may_be_wide, float* to) {
    const Level* level = find_level(level_name);
    if (!level) return 1;
    const Layout layout{outputs, inputs, bits, scales, has_offsets != 0, table};
    if (!layout.is_valid() || num_bytes != layout.bytes()) return 2;
    try {
        multiply(*level, {rows, num_rows}, {{{layout, cells}, factors, bias}}, {to}, {}, may_be_wide != 0);
    } catch (const std::exception&) {
        return 3;
    }
    return 0;
}

// Computes attention on one level, over a cache in f16 (0), u8 (1) or f32 (2). Returns 0; 1: unknown level, 2: numbers of rows, tokens or blocks that do not exist, 3: no memory.
EXPORTED int ouzel_kernels_attend(const char* level_name, size_t num_heads, size_t num_kv_heads, size_t channels, float scale, float softcap,
                                  size_t window, const float* sinks, int cache_type, int writes_cache, size_t num_sequences, const int32_t* begins,
                                  const int32_t* past_lens, const int32_t* block_ids, const int32_t* block_begins, size_t num_blocks, uint8_t* keys, uint8_t* values,
                                  size_t num_rows, const float* query_rows, const float* key_rows, const float* value_rows, const int32_t* two_way_begins,
                                  float* to) {
    const Level* level = find_level(level_name);
    if (!level) return 1;
    if (cache_type < 0 || cache_type > 2) return 2;
    try {
        attend(*level, {num_heads, num_kv_heads, channels, scale, softcap, window, sinks, CacheType(cache_type), writes_cache != 0},
               {num_sequences, begins, past_lens, block_ids, block_begins}, {num_blocks, keys, values},
               {num_rows, query_rows, key_rows, value_rows, two_way_begins}, to);
    } catch (const std::out_of_range&) {
        return 2;
    } catch (const std::exception&) {
        return 3;
    }
    return 0;
}
