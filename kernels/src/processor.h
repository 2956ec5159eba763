// The instructions that this processor and its system support.
#pragma once

namespace ouzel {

bool has_avx2();         // AVX2, FMA and F16C
bool has_avx_vnni();     // and AVX-VNNI
bool has_avx512_vnni();  // and AVX-512 F, BW, DQ, VL and VNNI
bool has_amx();          // and AVX-512 BF16, GFNI, AMX tiles of int8 and bf16, which the system allows
bool has_avx512_bf16();  // AVX-512 VNNI, BF16 and GFNI, for emulated tiles

}  // namespace ouzel
