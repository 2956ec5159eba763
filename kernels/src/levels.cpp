#include <cstdlib>
#include <cstring>

#include "level.h"

namespace ouzel {

const Level* find_level(const char* name) {
    for (const Level* level : LEVELS)
        if (!std::strcmp(level->name, name)) return level->is_supported() ? level : nullptr;
    if (!std::strcmp(EMULATED_AMX.name, name)) return EMULATED_AMX.is_supported() ? &EMULATED_AMX : nullptr;
    return nullptr;
}

const Level* find_level() {
    static const Level* const found = []() -> const Level* {
        if (const char* name = std::getenv("OUZEL_KERNELS_LEVEL"); name && *name) return find_level(name);
        for (const Level* level : LEVELS)
            if (level->is_supported()) return level;
        return nullptr;
    }();
    return found;
}

}  // namespace ouzel
