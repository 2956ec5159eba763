// Checks of the attention over the KV cache on one level.
#pragma once
#include "check.h"
#include "level.h"

namespace ouzel {

void check_attention(const Level& level, const Options& options, Report& report);

}  // namespace ouzel
