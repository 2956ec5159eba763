#include "kernels512.h"
#include "processor.h"

namespace ouzel {
namespace {

size_t chunk(size_t num_rows) { return choose_chunk(num_rows, CHUNKS_512); }
void finish() {}

}  // namespace

const Level AVX512_VNNI = {
    "avx512_vnni", has_avx512_vnni, chunk, 0, put_row<Quantizer<Vectors512>>,
    put_normed_row<Vectors512, Quantizer<Vectors512>>, put_gated_group<Vectors512, Quantizer<Vectors512>>, turn_head<Vectors512>, multiply_any<Kernels512>, finish,
};

}  // namespace ouzel
