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
    template <int BITS>
    static Sum start(int32_t minus_sum) { return {_mm256_slli_epi32(_mm256_set1_epi32(minus_sum), BITS - 1), _mm256_setzero_si256()}; }
    template <int BITS>
    static void add(Sum& sum, Int weights, const int8_t* values) { sum.first = _mm256_dpbusd_avx_epi32(sum.first, weights, four(values)); }
    template <int BITS, bool IS_APART>
    static void add_second(Sum& sum, Int weights, const int8_t* values) {
        if (IS_APART)
            sum.second = _mm256_dpbusd_avx_epi32(sum.second, weights, four(values));
        else
            add<BITS>(sum, weights, values);
    }
    template <int BITS>
    static constexpr int steps_in_16_bits() { return 0; }  // sums are never in 16 bits
    static void flush(Sum&) {}
    static Int total(const Sum& sum) { return _mm256_add_epi32(sum.first, sum.second); }
};

constexpr size_t CHUNKS[] = {1, 2, 3, 4, 5};

struct Kernels {
    template <class C>
    static auto find(size_t chunk) {
        return chunk == 1   ? multiply_block<Vectors, 1, 2, C>
               : chunk == 2 ? multiply_block<Vectors, 2, 1, C>
               : chunk == 3 ? multiply_block<Vectors, 3, 1, C>
               : chunk == 4 ? multiply_block<Vectors, 4, 1, C>
                            : multiply_block<Vectors, 5, 1, C>;
    }
};

}  // namespace

const Level AVX_VNNI = {
    "avx_vnni", has_avx_vnni, choose_chunk<CHUNKS>, 0, put_row<Quantizer<Vectors>>,
    put_normed_row<Vectors, Quantizer<Vectors>>, normalise_row<Vectors>, put_gated_group<Vectors, Quantizer<Vectors>>, turn_head<Vectors>, multiply_any<Kernels>,
    choose_chunk<QUERY_CHUNKS_256>, attend_any<Vectors>, join_parts<Vectors>, divide_by_sum<Vectors>, finish_nothing,
};

}  // namespace ouzel
