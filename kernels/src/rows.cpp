#include "rows.h"

#include <cstring>

namespace ouzel {

void Rows::resize(size_t num_rows, const Layout& layout, size_t rows_in_chunk, bool in_bf16) {
    count = num_rows, inputs = layout.inputs, groups = layout.groups(), scales = layout.scales;
    is_wide = in_bf16, chunk = in_bf16 ? 16 : rows_in_chunk;
    chunks = (num_rows + chunk - 1) / chunk;
    if (is_wide) {
        chunks += chunks % 2;  // the kernel takes two tiles of rows at once
        wide.reserve(chunks * 16 * groups * GROUP);
        for (size_t row = count; row < chunks * 16; row++)
            for (size_t group = 0; group < groups; group++)
                for (size_t half = 0; half < 2; half++) std::memset(wide.data() + wide_at(row, group) + half * 512, 0, 64);
        return;
    }
    const size_t places = chunks * groups * chunk;
    values.reserve(places * GROUP);
    scale.reserve(places * scales);
    minus_sum.reserve(places * scales);
    weighted.reserve(places * scales);
    for (size_t row = count; row < chunks * chunk; row++)
        for (size_t group = 0; group < groups; group++) {
            const size_t place = at(row, group);
            std::memset(values.data() + place * GROUP, 0, GROUP);
            for (int s = 0; s < scales; s++) scale.data()[place * scales + s] = 0, minus_sum.data()[place * scales + s] = 0, weighted.data()[place * scales + s] = 0;
        }
}

float* wide_sums(size_t count) {
    static thread_local Buffer<float> sums;
    return sums.reserve(count);
}

}  // namespace ouzel
