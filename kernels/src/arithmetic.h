// Functions of numbers that give the same bits with vectors of any size.
#pragma once
#include <cstddef>
#include <initializer_list>

namespace ouzel {
namespace {

// exp(x) - 1 = 2^n * (1 + y) - 1 for x in [-87, 87]; other numbers are cut to this range.
template <class V>
struct ExponentialParts {
    typename V::Float n, y;
};

// With x = n log(2) + r, y is a polynomial of r. The coefficients are those of Cephes' expf.
template <class V>
ExponentialParts<V> divide_exponential(typename V::Float x) {
    x = V::least(V::largest(x, V::all(-87.f)), V::all(87.f));
    const typename V::Float n = V::rounded(V::times(x, V::all(1.44269504f)));
    typename V::Float r = V::fused(n, V::all(-0.693359375f), x);
    r = V::fused(n, V::all(2.12194440e-4f), r);
    typename V::Float y = V::all(1.9875691500e-4f);
    for (float coefficient : {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f})
        y = V::fused(y, r, V::all(coefficient));
    return {n, V::fused(y, V::times(r, r), r)};
}

// exp(x) for x in [-87, 87], with an error below 2 units in the last place.
template <class V>
typename V::Float exponential(typename V::Float x) {
    const ExponentialParts<V> parts = divide_exponential<V>(x);
    return V::times(V::plus(parts.y, V::all(1.f)), V::power_of_two(parts.n));
}

// tanh(x / 2) with an error of few units in the last place, also near 0: with z = exp(x) - 1 it is z / (z + 2).
template <class V>
typename V::Float tanh_of_half(typename V::Float x) {
    const ExponentialParts<V> parts = divide_exponential<V>(x);
    const typename V::Float power = V::power_of_two(parts.n);
    const typename V::Float z = V::fused(parts.y, power, V::minus(power, V::all(1.f)));
    return V::over(z, V::plus(z, V::all(2.f)));
}

// The sums of each four numbers of four vectors, (x0 + x1) + (x2 + x3): first the sums of `a`.
template <class V>
typename V::Float add_fours(typename V::Float a, typename V::Float b, typename V::Float c, typename V::Float d) {
    const auto low = V::low_in_turns(a, b), high = V::high_in_turns(a, b), other_low = V::low_in_turns(c, d), other_high = V::high_in_turns(c, d);
    const auto first = V::plus(V::low_pairs(low, other_low), V::high_pairs(low, other_low));
    const auto second = V::plus(V::low_pairs(high, other_high), V::high_pairs(high, other_high));
    return V::by_place(V::plus(first, second));
}

// The sum of COUNT numbers, a power of two; overwrites them.
template <size_t COUNT>
float add_in_halves(float* numbers) {
    for (size_t half = COUNT / 2; half; half /= 2)
        for (size_t i = 0; i < half; i++) numbers[i] += numbers[i + half];
    return numbers[0];
}

}  // namespace
}  // namespace ouzel
