// Runs the phases of an operation on the threads of the calling TBB arena.
//
// All threads walk through the phases by themselves and take chunks of a phase by a counter: nobody is woken between
// phases, and a thread that comes late delays nobody.
#pragma once
#include <cstddef>
#include <functional>

namespace ouzel {

struct Phase {
    size_t chunks;
    std::function<void(size_t)> body;  // takes the number of a chunk
};

constexpr size_t MOST_PHASES = 8;

// Calls `finish` on each thread after its last chunk. Throws the first exception of a chunk, after the others have ended.
void run_phases(const Phase* phases, size_t count, void (*finish)());

// Threads of the calling arena.
size_t num_threads();

}  // namespace ouzel
