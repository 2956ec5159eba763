"""Runs a function from bytes to bytes in processes of its own, under limits that the kernel
enforces.

Rules
1. The first job starts one process, the template. It builds the function once, with a factory named
   by its import path, and forks for jobs, which inherit everything built. The factory must start no
   threads.
2. A process runs one job at a time, and further jobs as long as each returned a result soon. So a
   job costs a millisecond, a kill costs a fork, and no damage is passed to the next job.
3. The limits of a job are timers and limits of its process. The kernel ends a job that exceeds
   them, even in native code and without a waiting parent.
4. The template ends with its parent, and its jobs end with it. Signals for the server are ignored.
5. A job that takes longer than a moment uses only processor time that other processes leave.
"""

from ouzel.limited_process.process import (
    ChildDied,
    JobEnded,
    JobFailed,
    JobLost,
    LimitedProcess,
    MemoryLimitExceeded,
    TimeLimitExceeded,
)
from ouzel.limited_process.protocol import Limits

__all__ = [
    "ChildDied",
    "JobEnded",
    "JobFailed",
    "JobLost",
    "LimitedProcess",
    "Limits",
    "MemoryLimitExceeded",
    "TimeLimitExceeded",
]
