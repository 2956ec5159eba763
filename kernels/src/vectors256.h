// Vectors of 256 bits, for AVX2 and AVX-VNNI.
#pragma once
#include <immintrin.h>

#include "cells.h"

namespace ouzel {
namespace {

struct Vectors256 {
    static constexpr int LANES = 8;
    using Int = __m256i;
    using Float = __m256;

    static void prefetch(const uint8_t* p) { _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T0); }
    static Float zero() { return _mm256_setzero_ps(); }
    static Float all(float value) { return _mm256_set1_ps(value); }
    static Int load(const uint8_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
    static Int low_half(Int both) { return _mm256_and_si256(both, _mm256_set1_epi8(15)); }
    static Int high_half(Int both) { return _mm256_and_si256(_mm256_srli_epi16(both, 4), _mm256_set1_epi8(15)); }
    // The bits of `a` that `mask` has, and those of `b`.
    static Int merged(Int a, int mask, Int b) { return _mm256_or_si256(_mm256_and_si256(a, _mm256_set1_epi8(char(mask))), b); }
    static Int repeat_table(const uint8_t* p) { return _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(p))); }
    static Int look_up(Int table, Int places) { return _mm256_shuffle_epi8(table, places); }
    template <int COUNT>
    static Int left(Int a) { return _mm256_slli_epi16(a, COUNT); }
    template <int COUNT>
    static Int right(Int a) { return _mm256_srli_epi16(a, COUNT); }
    static Int four(const int8_t* p) {
        int32_t value;
        __builtin_memcpy(&value, p, 4);
        return _mm256_set1_epi32(value);
    }
    static Float halves(const uint8_t* p) { return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }
    // Numbers of u8.
    static Float bytes(const uint8_t* p) { return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)))); }
    // Each of the first LANES / 4 numbers four times.
    static Float each_four_times(const float* p) { return _mm256_set_m128(_mm_set1_ps(p[1]), _mm_set1_ps(p[0])); }
    // Four numbers, again and again.
    static Float repeat_four(const float* p) { return _mm256_broadcast_ps(reinterpret_cast<const __m128*>(p)); }
    // Of each four numbers of two vectors the first two, or the last two, in turns: a0 b0 a1 b1, a2 b2 a3 b3.
    static Float low_in_turns(Float a, Float b) { return _mm256_unpacklo_ps(a, b); }
    static Float high_in_turns(Float a, Float b) { return _mm256_unpackhi_ps(a, b); }
    // The same of pairs of numbers: a0 a1 b0 b1, a2 a3 b2 b3.
    static Float low_pairs(Float a, Float b) { return _mm256_castpd_ps(_mm256_unpacklo_pd(_mm256_castps_pd(a), _mm256_castps_pd(b))); }
    static Float high_pairs(Float a, Float b) { return _mm256_castpd_ps(_mm256_unpackhi_pd(_mm256_castps_pd(a), _mm256_castps_pd(b))); }
    // The first number of each four, then the second one of each, and so on.
    static Float by_place(Float a) { return _mm256_permutevar8x32_ps(a, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)); }
    static Float multiply(Int a, Float b) { return _mm256_mul_ps(_mm256_cvtepi32_ps(a), b); }
    static Float fused(Float a, Float b, Float c) { return _mm256_fmadd_ps(a, b, c); }
    static void store(float* to, Float value) { _mm256_storeu_ps(to, value); }
    static Float load_floats(const float* p) { return _mm256_loadu_ps(p); }
    static Float plus(Float a, Float b) { return _mm256_add_ps(a, b); }
    static Float minus(Float a, Float b) { return _mm256_sub_ps(a, b); }
    static Float times(Float a, Float b) { return _mm256_mul_ps(a, b); }
    static Float over(Float a, Float b) { return _mm256_div_ps(a, b); }
    static Float least(Float a, Float b) { return _mm256_min_ps(b, a); }  // a NaN in `a` stays
    static Float largest(Float a, Float b) { return _mm256_max_ps(b, a); }
    static Float rounded(Float a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
    // 2^n for whole numbers n in [-126, 127].
    static Float power_of_two(Float n) {
        return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23));
    }

    // The bits of the largest absolute number; an infinity or a NaN has more bits than any number.
    template <int COUNT>
    static uint32_t largest_bits(const float* from) {
        const Int mask = _mm256_set1_epi32(0x7fffffff);
        Int largest = _mm256_setzero_si256();
        for (int i = 0; i < COUNT; i += 8)
            largest = _mm256_max_epi32(largest, _mm256_and_si256(mask, _mm256_castps_si256(_mm256_loadu_ps(from + i))));
        __m128i four = _mm_max_epi32(_mm256_castsi256_si128(largest), _mm256_extracti128_si256(largest, 1));
        four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
        four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0xb1));
        return uint32_t(_mm_cvtsi128_si32(four));
    }

    // Writes round(from * inverse) and returns the sum; writes zeros if the numbers are not finite.
    template <int COUNT>
    static int32_t quantize(const float* from, float inverse, bool is_finite, int8_t* to) {
        const Float factor = _mm256_set1_ps(inverse);
        const Int mask = _mm256_set1_epi32(is_finite ? -1 : 0);
        Int sum = _mm256_setzero_si256();
        for (int i = 0; i < COUNT; i += 8) {
            const Int n = _mm256_and_si256(mask, _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(from + i), factor)));
            sum = _mm256_add_epi32(sum, n);
            const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(n), _mm256_extracti128_si256(n, 1));
            _mm_storel_epi64(reinterpret_cast<__m128i*>(to + i), _mm_packs_epi16(words, words));
        }
        __m128i four = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
        four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
        four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0xb1));
        return _mm_cvtsi128_si32(four);
    }
};

}  // namespace
}  // namespace ouzel
