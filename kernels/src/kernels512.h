// The kernels of AVX-512 VNNI for each number of rows in a chunk.
#pragma once
#include "vectors512.h"
#include "vnni.h"

namespace ouzel {
namespace {

constexpr size_t CHUNKS_512[] = {1, 2, 3, 4, 6, 8, 10, 11, 12};

struct Kernels512 {
    template <class C>
    static auto find(size_t chunk) {
        return chunk == 1    ? multiply_block<Vectors512, 1, 2, C>
               : chunk == 2  ? multiply_block<Vectors512, 2, 2, C>
               : chunk == 3  ? multiply_block<Vectors512, 3, 2, C>
               : chunk == 4  ? multiply_block<Vectors512, 4, 2, C>
               : chunk == 6  ? multiply_block<Vectors512, 6, 2, C>
               : chunk == 8  ? multiply_block<Vectors512, 8, 1, C>
               : chunk == 10 ? multiply_block<Vectors512, 10, 1, C>
               : chunk == 11 ? multiply_block<Vectors512, 11, 1, C>  // three for 32 rows
                             : multiply_block<Vectors512, 12, 1, C>;
    }
};

}  // namespace
}  // namespace ouzel
