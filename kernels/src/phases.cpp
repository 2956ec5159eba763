#include "phases.h"

#include <emmintrin.h>
#include <sched.h>

#include <atomic>
#include <exception>

#include "tbb/task_arena.h"
#include "tbb/task_group.h"

namespace ouzel {
namespace {

constexpr int SPINS = 2000;  // turns of waiting for other threads before the processor is given away

struct alignas(64) Counter {
    std::atomic<size_t> next{0};
    alignas(64) std::atomic<size_t> done{0};
};

void wait_until_done(const Counter& counter, size_t chunks) {
    for (int spins = 0; counter.done.load(std::memory_order_acquire) < chunks; spins++) {
        if (spins < SPINS)
            _mm_pause();
        else
            sched_yield();
    }
}

}  // namespace

void run_phases(const Phase* phases, size_t count, void (*finish)()) {
    Counter counters[MOST_PHASES];
    std::atomic<bool> has_failed{false};
    std::exception_ptr failure;  // of the thread that set has_failed
    const auto run_chunk = [&](const Phase& phase, size_t chunk) {
        if (has_failed.load(std::memory_order_relaxed)) return;  // the others only count
        try {
            phase.body(chunk);
        } catch (...) {
            if (!has_failed.exchange(true)) failure = std::current_exception();
        }
    };
    const auto work = [&] {
        for (size_t phase = 0; phase < count; phase++) {
            const size_t chunks = phases[phase].chunks;
            for (size_t chunk; (chunk = counters[phase].next.fetch_add(1, std::memory_order_acq_rel)) < chunks;) {
                run_chunk(phases[phase], chunk);
                counters[phase].done.fetch_add(1, std::memory_order_acq_rel);
            }
            wait_until_done(counters[phase], chunks);
        }
        finish();
    };
    const size_t helpers = num_threads() - 1;
    tbb::task_group group;
    for (size_t i = 0; i < helpers; i++) group.run(work);
    work();
    if (helpers) group.wait();
    if (failure) std::rethrow_exception(failure);
}

size_t num_threads() { return size_t(tbb::this_task_arena::max_concurrency()); }

}  // namespace ouzel
