"""A function from bytes to bytes runs in a process of its own for each job, under limits that the kernel keeps.

Rules
1. One process, the template, is started when the first job comes. It builds the function once, by a factory that is
   named by its import path, and forks for every job: a job begins with all that was built, costs some 2 ms, and leaves
   nothing behind. So the factory must start no threads.
2. A job's limits are timers and limits of its own process. The kernel ends what goes over them, whatever native code
   is doing, and also when nobody is left who waits for it.
3. The template ends when its parent does, and its jobs with it. Signals for the server are the parent's business.
4. A job that takes longer than a moment goes on with what processor time others leave.
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
