#include "heads.h"
#include "processor.h"
#include "vectors256.h"
#include "vnni.h"

namespace ouzel {
namespace {

struct Vectors : Vectors256 {
    struct Sum {
        __m256i first, second;  // two chains of additions, where there are few sums
    };
    static Sum start(int32_t value) { return {_mm256_set1_epi32(value), _mm256_setzero_si256()}; }
    static void add(Sum& sum, Int weights, const int8_t* values) { sum.first = _mm256_dpbusd_avx_epi32(sum.first, weights, four(values)); }
    template <bool IS_APART>
    static void add_high(Sum& sum, Int weights, const int8_t* values) {
        if (IS_APART)
            sum.second = _mm256_dpbusd_avx_epi32(sum.second, weights, four(values));
        else
            add(sum, weights, values);
    }
    static void flush(Sum&) {}
    static Int total(const Sum& sum) { return _mm256_add_epi32(sum.first, sum.second); }
};

constexpr size_t CHUNKS[] = {1, 2, 3, 4, 5};

struct Kernels {
    template <int S, bool O>
    static auto find(size_t chunk) {
        return chunk == 1   ? multiply_block<Vectors, 1, 2, S, O>
               : chunk == 2 ? multiply_block<Vectors, 2, 1, S, O>
               : chunk == 3 ? multiply_block<Vectors, 3, 1, S, O>
               : chunk == 4 ? multiply_block<Vectors, 4, 1, S, O>
                            : multiply_block<Vectors, 5, 1, S, O>;
    }
};

}  // namespace

const Level AVX_VNNI = {
    "avx_vnni", has_avx_vnni, choose_chunk<CHUNKS>, 0, put_row<Quantizer<Vectors>>,
    put_normed_row<Vectors, Quantizer<Vectors>>, put_gated_group<Vectors, Quantizer<Vectors>>, turn_head<Vectors>, multiply_any<Kernels>,
    choose_chunk<QUERY_CHUNKS_256>, attend_any<Vectors>, join_parts<Vectors>, divide_by_sum<Vectors>, finish_nothing,
};

}  // namespace ouzel
