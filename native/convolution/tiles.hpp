// What AMX, which multiplies tiles of narrow numbers, needs besides its instructions.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace sn {

// Values are stored before tiles are loaded: compilers do not know what a tile's load reads.
#define SN_FINISH_STORES() __asm__ volatile("" ::: "memory")

// What the processor reads to configure its eight tiles.
struct alignas(64) TileShapes {
    uint8_t palette = 1, start = 0, reserved[14] = {};
    uint16_t bytes[16] = {};
    uint8_t rows[16] = {};

    // GCC 12 takes the instruction for a read of eight bytes, and leaves out the stores behind
    // them.
    void load() const {
        __asm__ volatile("" : : "r"(this) : "memory");
        _tile_loadconfig(this);
    }
};

}  // namespace sn
