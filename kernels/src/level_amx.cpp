#include "amx.h"
#include "heads.h"
#include "processor.h"

namespace ouzel {
namespace {

struct alignas(64) TileConfig {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {};
    uint8_t rows[16] = {};
};

thread_local int configured = 0;  // rows and inputs of the tiles of this thread; 0: it has none

struct Tiles {
    // Tiles 0 to 3 take sums, 4 and 5 rows of activations, 6 and 7 weights: 4 inputs of int8, or 2 of bf16, to a row.
    static void configure(int rows, int row_bytes) {
        const int wanted = rows << 8 | row_bytes;
        if (configured == wanted) return;
        TileConfig config;
        for (int tile = 0; tile < 8; tile++) {
            config.row_bytes[tile] = uint16_t(tile == 4 || tile == 5 ? row_bytes : 64);
            config.rows[tile] = uint8_t(tile < 6 ? rows : row_bytes / 4);
        }
        asm volatile("" ::"r"(&config) : "memory");  // the intrinsic names the first bytes only, and GCC 12 drops the others
        _tile_loadconfig(&config);
        configured = wanted;
    }
    // The numbers of tiles are template arguments, which GCC's intrinsics do not take. The kernels order these instructions
    // among other loads and stores by barriers of their own.
    template <int TILE>
    static void load(const void* p, size_t stride) { asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(p), "r"(stride), "n"(TILE)); }
    template <int TILE>
    static void store(void* p, size_t stride) { asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(p), "r"(stride), "n"(TILE)); }
    template <int TILE>
    static void zero() { asm volatile("tilezero %%tmm%c0" ::"n"(TILE)); }
    template <int TO, int A, int B>
    static void multiply() { asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"n"(TO), "n"(A), "n"(B)); }
    template <int TO, int A, int B>
    static void multiply_bf16() { asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"n"(TO), "n"(A), "n"(B)); }
};

void finish() {
    if (!configured) return;
    _tile_release();
    configured = 0;
}

}  // namespace

const Level AMX = {
    "amx", has_amx, amx_chunk, WIDE_FROM, put_row<TileRows>,
    put_normed_row<Vectors512, TileRows>, normalise_row<Vectors512>, put_gated_group<Vectors512, TileRows>, turn_head<Vectors512>, multiply_by_tiles<Tiles>,
    choose_chunk<QUERY_CHUNKS_512>, attend_any<Vectors512>, join_parts<Vectors512>, divide_by_sum<Vectors512>, finish,
};

}  // namespace ouzel
