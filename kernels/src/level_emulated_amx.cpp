// The kernels of AMX with tiles in plain C++: for tests on processors that have AVX-512 but no tiles.
#include "amx.h"
#include "heads.h"
#include "processor.h"

namespace ouzel {
namespace {

struct Tile {
    uint8_t bytes[16][64];
};
thread_local Tile tiles[8];
thread_local int tile_rows, tile_row_bytes;

inline int rows_of(int tile) { return tile < 6 ? tile_rows : tile_row_bytes / 4; }
inline int bytes_of(int tile) { return tile == 4 || tile == 5 ? tile_row_bytes : 64; }

inline float widened(const uint8_t* p) {
    uint32_t bits = uint32_t(p[0]) << 16 | uint32_t(p[1]) << 24;
    float value;
    __builtin_memcpy(&value, &bits, 4);
    return value;
}

// Semantics: Intel's Software Developer's Manual, volume 2, TILELOADD, TILESTORED, TDPBSSD and TDPBF16PS.
struct Tiles {
    static void configure(int rows, int row_bytes) { tile_rows = rows, tile_row_bytes = row_bytes; }
    template <int TILE>
    static void load(const void* p, size_t stride) {
        for (int row = 0; row < rows_of(TILE); row++)
            __builtin_memcpy(tiles[TILE].bytes[row], static_cast<const uint8_t*>(p) + row * stride, size_t(bytes_of(TILE)));
    }
    template <int TILE>
    static void store(void* p, size_t stride) {
        for (int row = 0; row < rows_of(TILE); row++)
            __builtin_memcpy(static_cast<uint8_t*>(p) + row * stride, tiles[TILE].bytes[row], size_t(bytes_of(TILE)));
    }
    template <int TILE>
    static void zero() { __builtin_memset(&tiles[TILE], 0, sizeof(Tile)); }
    template <int TO, int A, int B>
    static void multiply() {
        for (int row = 0; row < rows_of(TO); row++)
            for (int column = 0; column < 16; column++) {
                int32_t sum;
                __builtin_memcpy(&sum, tiles[TO].bytes[row] + column * 4, 4);
                for (int k = 0; k < bytes_of(A); k++)
                    sum += int32_t(int8_t(tiles[A].bytes[row][k])) * int8_t(tiles[B].bytes[k / 4][column * 4 + k % 4]);
                __builtin_memcpy(tiles[TO].bytes[row] + column * 4, &sum, 4);
            }
    }
    template <int TO, int A, int B>
    static void multiply_bf16() {
        for (int row = 0; row < rows_of(TO); row++)
            for (int column = 0; column < 16; column++) {
                float sum;
                __builtin_memcpy(&sum, tiles[TO].bytes[row] + column * 4, 4);
                for (int k = 0; k < bytes_of(A) / 2; k++)
                    sum += widened(tiles[A].bytes[row] + k * 2) * widened(tiles[B].bytes[k / 2] + column * 4 + k % 2 * 2);
                __builtin_memcpy(tiles[TO].bytes[row] + column * 4, &sum, 4);
            }
    }
};

void finish() {}

}  // namespace

const Level EMULATED_AMX = {
    "emulated_amx", has_avx512_bf16, amx_chunk, WIDE_FROM, put_row<TileRows>,
    put_normed_row<Vectors512, TileRows>, normalise_row<Vectors512>, put_gated_group<Vectors512, TileRows>, turn_head<Vectors512>, multiply_by_tiles<Tiles>,
    choose_chunk<QUERY_CHUNKS_512>, attend_any<Vectors512>, join_parts<Vectors512>, divide_by_sum<Vectors512>, finish,
};

}  // namespace ouzel
