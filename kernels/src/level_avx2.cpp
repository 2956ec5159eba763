#include "heads.h"
#include "processor.h"
#include "vectors256.h"
#include "vnni.h"

namespace ouzel {
namespace {

// Adds products in 16 bits: eight of at most 2 * 15 * 127 fit. Then flush() adds them to sums of 32 bits.
struct Vectors : Vectors256 {
    struct Sum {
        __m256i words, total;
    };
    static Sum start(int32_t value) { return {_mm256_setzero_si256(), _mm256_set1_epi32(value)}; }
    static void add(Sum& sum, Int weights, const int8_t* values) {
        sum.words = _mm256_add_epi16(sum.words, _mm256_maddubs_epi16(weights, four(values)));
    }
    template <bool IS_APART>
    static void add_high(Sum& sum, Int weights, const int8_t* values) { add(sum, weights, values); }
    static void flush(Sum& sum) {
        sum.total = _mm256_add_epi32(sum.total, _mm256_madd_epi16(sum.words, _mm256_set1_epi16(1)));
        sum.words = _mm256_setzero_si256();
    }
    static Int total(const Sum& sum) { return sum.total; }
};

constexpr size_t CHUNKS[] = {1, 2, 3, 4};

struct Kernels {
    template <int S, bool O>
    static auto find(size_t chunk) {
        return chunk == 1   ? multiply_block<Vectors, 1, 2, S, O>
               : chunk == 2 ? multiply_block<Vectors, 2, 1, S, O>
               : chunk == 3 ? multiply_block<Vectors, 3, 1, S, O>
                            : multiply_block<Vectors, 4, 1, S, O>;
    }
};

}  // namespace

const Level AVX2 = {
    "avx2", has_avx2, choose_chunk<CHUNKS>, 0, put_row<Quantizer<Vectors>>,
    put_normed_row<Vectors, Quantizer<Vectors>>, put_gated_group<Vectors, Quantizer<Vectors>>, turn_head<Vectors>, multiply_any<Kernels>,
    choose_chunk<QUERY_CHUNKS_256>, attend_any<Vectors>, join_parts<Vectors>, divide_by_sum<Vectors>, finish_nothing,
};

}  // namespace ouzel
