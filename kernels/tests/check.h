// What the checks of all kernels share: options, the report, random numbers and comparisons.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace ouzel {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

constexpr double SUM_ERROR = 2e-6;  // of a sum of floats, relative to the sum of the absolute numbers

struct Shape {
    size_t outputs, inputs;
};

struct Options {
    int threads = 1;
    const char* level = nullptr;
    bool is_small = false;

    std::vector<Shape> shapes() const {
        if (is_small) return {{1, 32}, {33, 96}};
        return {{1, 32}, {33, 96}, {70, 320}, {96, 1024}, {600, 64}, {40, 1100}};  // {600, 64}: more blocks than parts
    }
    std::vector<size_t> counts() const {
        if (is_small) return {1, 2, 3, 4, 5, 9};
        std::vector<size_t> all;
        for (size_t count = 1; count <= 17; count++) all.push_back(count);
        for (size_t count : {33, 127, 128, 140}) all.push_back(count);
        return all;
    }
    std::vector<size_t> few_counts() const {
        if (is_small) return {1, 3, 5};
        return {1, 2, 3, 5, 8, 16, 17, 33, 127, 128};
    }
    std::vector<size_t> inner_sizes() const {
        if (is_small) return {32, 96};
        return {32, 96, 192};
    }
};

// Counts the checks of a level and prints those that fail.
class Report {
public:
    explicit Report(const char* level) : level_(level) {}

    void expect(bool holds, const std::string& what) {
        checks_++;
        if (holds) return;
        if (++faults_ <= MOST_PRINTED) std::printf("%s: fault: %s\n", level_, what.c_str());
    }
    bool end() const {
        std::printf("%s: %zu checks, %zu faults\n", level_, checks_, faults_);
        return faults_ == 0;
    }

private:
    static constexpr size_t MOST_PRINTED = 20;
    const char* level_;
    size_t checks_ = 0, faults_ = 0;
};

class Random {
public:
    explicit Random(unsigned seed) : engine_(seed) {}

    float between(float least, float largest) { return least + (largest - least) * float(engine_() >> 8) * 0x1p-24f; }
    unsigned below(unsigned end) { return unsigned(engine_() % end); }
    Floats numbers(size_t count) {
        Floats found(count);
        for (float& each : found) each = between(-2, 2);
        return found;
    }

private:
    std::mt19937 engine_;
};

inline Floats slice(const Floats& numbers, size_t first_row, size_t num_rows, size_t columns) {
    const auto begin = numbers.begin() + std::ptrdiff_t(first_row * columns);
    return Floats(begin, begin + std::ptrdiff_t(num_rows * columns));
}

inline bool has_same_bits(const Floats& a, const Floats& b) {
    return a.size() == b.size() && !std::memcmp(a.data(), b.data(), a.size() * sizeof(float));
}

// Whether each number is as near to the exact one as a sum of floats is.
inline bool is_near(const Floats& found, const Doubles& exact, const Doubles& magnitudes) {
    for (size_t i = 0; i < found.size(); i++)
        if (!(std::fabs(double(found[i]) - exact[i]) <= SUM_ERROR * (magnitudes[i] + std::fabs(exact[i]) + 1))) return false;
    return true;
}

}  // namespace ouzel
