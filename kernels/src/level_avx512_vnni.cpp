#include "kernels512.h"
#include "heads.h"
#include "processor.h"

namespace ouzel {

const Level AVX512_VNNI = {
    "avx512_vnni", has_avx512_vnni, choose_chunk<CHUNKS_512>, 0, put_row<Quantizer<Vectors512>>,
    put_normed_row<Vectors512, Quantizer<Vectors512>>, normalise_row<Vectors512>, put_gated_group<Vectors512, Quantizer<Vectors512>>, turn_head<Vectors512>, multiply_any<Kernels512>,
    choose_chunk<QUERY_CHUNKS_512>, attend_any<Vectors512>, join_parts<Vectors512>, divide_by_sum<Vectors512>, finish_nothing,
};

}  // namespace ouzel
