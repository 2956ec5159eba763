// Reads CPUID (Intel's Software Developer's Manual, volume 2, CPUID) and the registers that the system saves.
#include "processor.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <initializer_list>

namespace ouzel {
namespace {

constexpr int REQUEST_PERMISSION = 0x1023;  // ARCH_REQ_XCOMP_PERM of Linux's arch_prctl
constexpr int TILE_DATA = 18;               // XFEATURE_XTILEDATA

struct Features {
    unsigned leaf1_ecx = 0, leaf7_ebx = 0, leaf7_ecx = 0, leaf7_edx = 0, leaf7_1_eax = 0;
    uint64_t saved = 0;  // XCR0: the register files that the system saves

    Features() {
        unsigned a, b, c, d;
        if (!__get_cpuid(1, &a, &b, &c, &d)) return;
        leaf1_ecx = c;
        if (c >> 27 & 1) {  // OSXSAVE
            unsigned low, high;
            asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
            saved = uint64_t(high) << 32 | low;
        }
        if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) leaf7_ebx = b, leaf7_ecx = c, leaf7_edx = d;
        if (__get_cpuid_count(7, 1, &a, &b, &c, &d)) leaf7_1_eax = a;
    }
    bool saves(uint64_t mask) const { return (saved & mask) == mask; }
};

const Features& features() {
    static const Features found;
    return found;
}

bool bit(unsigned word, int number) { return word >> number & 1; }

}  // namespace

bool has_avx2() {
    const Features& f = features();
    return f.saves(6) && bit(f.leaf1_ecx, 12) && bit(f.leaf1_ecx, 29) && bit(f.leaf7_ebx, 5);  // FMA, F16C, AVX2
}

bool has_avx_vnni() { return has_avx2() && bit(features().leaf7_1_eax, 4); }

bool has_avx512_vnni() {
    const Features& f = features();
    for (int number : {16, 17, 30, 31})  // F, DQ, BW, VL
        if (!bit(f.leaf7_ebx, number)) return false;
    return has_avx2() && f.saves(0xe6) && bit(f.leaf7_ecx, 11);
}

bool has_avx512_bf16() { return has_avx512_vnni() && bit(features().leaf7_1_eax, 5) && bit(features().leaf7_ecx, 8); }

bool has_amx() {
    const Features& f = features();
    for (int number : {22, 24, 25})  // AMX-BF16, AMX-TILE, AMX-INT8
        if (!bit(f.leaf7_edx, number)) return false;
    if (!has_avx512_bf16() || !f.saves(0x60000)) return false;
    static const bool is_permitted = syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
    return is_permitted;
}

}  // namespace ouzel
