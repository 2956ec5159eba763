#include "heads.h"
#include "processor.h"
#include "vectors256.h"
#include "vnni.h"

namespace ouzel {
namespace {

// Adds products in 16 bits where they fit; flush() adds them to sums of 32 bits. Two products of 15 * 127 are below 2^12, so the
// 16 bits hold eight of such pairs; two of 63 * 127 are below 2^14, and two pairs fit. Of values of 8 bits
// the magnitudes are multiplied, and the rows take the signs: two products of 128 * 127 fit, and are flushed at once.
struct Vectors : Vectors256 {
    struct Sum {
        __m256i words, total;
    };
    template <int BITS>
    static Sum start(int32_t minus_sum) {
        return {_mm256_setzero_si256(), _mm256_set1_epi32(BITS == 8 ? 0 : minus_sum * (1 << (BITS - 1)))};
    }
    template <int BITS>
    static void add(Sum& sum, Int weights, const int8_t* values) {
        if (BITS < 8) {
            sum.words = _mm256_add_epi16(sum.words, _mm256_maddubs_epi16(weights, four(values)));
        } else {
            const Int centered = _mm256_xor_si256(weights, _mm256_set1_epi8(char(0x80)));
            sum.words = _mm256_maddubs_epi16(_mm256_abs_epi8(centered), _mm256_sign_epi8(four(values), centered));
            flush(sum);
        }
    }
    template <int BITS, bool IS_APART>
    static void add_second(Sum& sum, Int weights, const int8_t* values) { add<BITS>(sum, weights, values); }
    // Steps of two operands whose sums fit into 16 bits; 0: no sums stay in 16 bits.
    template <int BITS>
    static constexpr int steps_in_16_bits() { return BITS == 4 ? 4 : BITS == 6 ? 1 : 0; }
    static void flush(Sum& sum) {
        sum.total = _mm256_add_epi32(sum.total, _mm256_madd_epi16(sum.words, _mm256_set1_epi16(1)));
        sum.words = _mm256_setzero_si256();
    }
    static Int total(const Sum& sum) { return sum.total; }
};

constexpr size_t CHUNKS[] = {1, 2, 3, 4};

struct Kernels {
    template <class C>
    static auto find(size_t chunk) {
        return chunk == 1   ? multiply_block<Vectors, 1, 2, C>
               : chunk == 2 ? multiply_block<Vectors, 2, 1, C>
               : chunk == 3 ? multiply_block<Vectors, 3, 1, C>
                            : multiply_block<Vectors, 4, 1, C>;
    }
};

}  // namespace

const Level AVX2 = {
    "avx2", has_avx2, choose_chunk<CHUNKS>, 0, put_row<Quantizer<Vectors>>,
    put_normed_row<Vectors, Quantizer<Vectors>>, normalise_row<Vectors>, put_gated_group<Vectors, Quantizer<Vectors>>, turn_head<Vectors>, multiply_any<Kernels>,
    choose_chunk<QUERY_CHUNKS_256>, attend_any<Vectors>, join_parts<Vectors>, divide_by_sum<Vectors>, finish_nothing,
};

}  // namespace ouzel
