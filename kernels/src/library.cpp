// Functions for Python's ctypes: the level in use, and products without a graph, for tests.
#include <cstring>
#include <exception>

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
EXPORTED size_t ouzel_kernels_bytes(size_t outputs, size_t inputs, int scales, int has_offsets) {
    const Layout layout{outputs, inputs, scales, has_offsets != 0};
    return layout.is_valid() ? layout.bytes() : 0;
}

// Multiplies rows by a matrix on one level. Returns 0; 1: unknown level, 2: wrong sizes, 3: no memory.
EXPORTED int ouzel_kernels_multiply(const char* level_name, size_t outputs, size_t inputs, int scales, int has_offsets,
                                    const uint8_t* cells, size_t num_bytes, const float* factors, const float* bias, const float* rows,
                                    size_t num_rows, int may_be_wide, float* to) {
    const Level* level = find_level(level_name);
    if (!level) return 1;
    const Layout layout{outputs, inputs, scales, has_offsets != 0};
    if (!layout.is_valid() || num_bytes != layout.bytes()) return 2;
    try {
        multiply(*level, {rows, num_rows}, {{{layout, cells}, factors, bias}}, {to}, nullptr, {}, may_be_wide != 0);
    } catch (const std::exception&) {
        return 3;
    }
    return 0;
}
