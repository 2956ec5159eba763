// Vectors of 512 bits, for AVX-512 VNNI and AMX.
#pragma once
#include <immintrin.h>

#include "cells.h"

namespace ouzel {
namespace {

struct Vectors512 {
    static constexpr int LANES = 16;
    using Int = __m512i;
    using Float = __m512;

    static void prefetch(const uint8_t* p) { _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T0); }
    static Float zero() { return _mm512_setzero_ps(); }
    static Float all(float value) { return _mm512_set1_ps(value); }
    static Int load(const uint8_t* p) { return _mm512_loadu_si512(p); }
    static Int low_half(Int both) { return _mm512_and_si512(both, _mm512_set1_epi8(15)); }
    static Int high_half(Int both) { return _mm512_and_si512(_mm512_srli_epi16(both, 4), _mm512_set1_epi8(15)); }
    // The bits of `a` that `mask` has, and those of `b`.
    static Int merged(Int a, int mask, Int b) { return _mm512_ternarylogic_epi64(a, _mm512_set1_epi8(char(mask)), b, 0xea); }
    static Int repeat_table(const uint8_t* p) { return _mm512_broadcast_i32x4(_mm_load_si128(reinterpret_cast<const __m128i*>(p))); }
    static Int look_up(Int table, Int places) { return _mm512_shuffle_epi8(table, places); }
    template <int COUNT>
    static Int left(Int a) { return _mm512_slli_epi16(a, COUNT); }
    template <int COUNT>
    static Int right(Int a) { return _mm512_srli_epi16(a, COUNT); }
    static Int four(const int8_t* p) {
        int32_t value;
        __builtin_memcpy(&value, p, 4);
        return _mm512_set1_epi32(value);
    }
    static Float halves(const uint8_t* p) { return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))); }
    // Numbers of u8.
    static Float bytes(const uint8_t* p) { return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))); }
    // Each of the first LANES / 4 numbers four times.
    static Float each_four_times(const float* p) {
        return _mm512_permutexvar_ps(_mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3), _mm512_castps128_ps512(_mm_loadu_ps(p)));
    }
    // Four numbers, again and again.
    static Float repeat_four(const float* p) { return _mm512_broadcast_f32x4(_mm_loadu_ps(p)); }
    // Of each four numbers of two vectors the first two, or the last two, in turns: a0 b0 a1 b1, a2 b2 a3 b3.
    static Float low_in_turns(Float a, Float b) { return _mm512_unpacklo_ps(a, b); }
    static Float high_in_turns(Float a, Float b) { return _mm512_unpackhi_ps(a, b); }
    // The same of pairs of numbers: a0 a1 b0 b1, a2 a3 b2 b3.
    static Float low_pairs(Float a, Float b) { return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a), _mm512_castps_pd(b))); }
    static Float high_pairs(Float a, Float b) { return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a), _mm512_castps_pd(b))); }
    // The first number of each four, then the second one of each, and so on.
    static Float by_place(Float a) { return _mm512_permutexvar_ps(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), a); }
    static Float multiply(Int a, Float b) { return _mm512_mul_ps(_mm512_cvtepi32_ps(a), b); }
    static Float fused(Float a, Float b, Float c) { return _mm512_fmadd_ps(a, b, c); }
    static void store(float* to, Float value) { _mm512_storeu_ps(to, value); }
    static Float load_floats(const float* p) { return _mm512_loadu_ps(p); }
    static Float plus(Float a, Float b) { return _mm512_add_ps(a, b); }
    static Float minus(Float a, Float b) { return _mm512_sub_ps(a, b); }
    static Float times(Float a, Float b) { return _mm512_mul_ps(a, b); }
    static Float over(Float a, Float b) { return _mm512_div_ps(a, b); }
    static Float least(Float a, Float b) { return _mm512_min_ps(b, a); }  // a NaN in `a` stays
    static Float largest(Float a, Float b) { return _mm512_max_ps(b, a); }
    static Float rounded(Float a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
    // 2^n for whole numbers n in [-126, 127].
    static Float power_of_two(Float n) {
        return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127)), 23));
    }

    struct Sum {
        __m512i first, second;  // two chains of additions, where there are few sums
    };
    template <int BITS>
    static Sum start(int32_t minus_sum) { return {_mm512_slli_epi32(_mm512_set1_epi32(minus_sum), BITS - 1), _mm512_setzero_si512()}; }
    template <int BITS>
    static void add(Sum& sum, Int weights, const int8_t* values) { sum.first = _mm512_dpbusd_epi32(sum.first, weights, four(values)); }
    template <int BITS, bool IS_APART>
    static void add_second(Sum& sum, Int weights, const int8_t* values) {
        if (IS_APART)
            sum.second = _mm512_dpbusd_epi32(sum.second, weights, four(values));
        else
            add<BITS>(sum, weights, values);
    }
    template <int BITS>
    static constexpr int steps_in_16_bits() { return 0; }  // sums are never in 16 bits
    static void flush(Sum&) {}
    static Int total(const Sum& sum) { return _mm512_add_epi32(sum.first, sum.second); }

    // The bits of the largest absolute number; an infinity or a NaN has more bits than any number.
    template <int COUNT>
    static uint32_t largest_bits(const float* from) {
        const Int mask = _mm512_set1_epi32(0x7fffffff);
        Int largest = _mm512_setzero_si512();
        for (int i = 0; i < COUNT; i += 16)
            largest = _mm512_max_epi32(largest, _mm512_and_si512(mask, _mm512_castps_si512(_mm512_loadu_ps(from + i))));
        return uint32_t(_mm512_reduce_max_epi32(largest));
    }

    // Writes round(from * inverse) and returns the sum; writes zeros if the numbers are not finite.
    template <int COUNT>
    static int32_t quantize(const float* from, float inverse, bool is_finite, int8_t* to) {
        const Float factor = _mm512_set1_ps(inverse);
        const __mmask16 mask = is_finite ? 0xffff : 0;
        Int sum = _mm512_setzero_si512();
        for (int i = 0; i < COUNT; i += 16) {
            const Int n = _mm512_maskz_cvtps_epi32(mask, _mm512_mul_ps(_mm512_loadu_ps(from + i), factor));
            sum = _mm512_add_epi32(sum, n);
            _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), _mm512_cvtepi32_epi8(n));
        }
        return _mm512_reduce_add_epi32(sum);
    }
};

}  // namespace
}  // namespace ouzel
