"""A function from bytes to bytes runs in processes of its own, under limits that the kernel keeps.

Rules
1. One process, the template, is started when the first job comes. It builds the function once, by a factory that is
   named by its import path, and forks for jobs: they begin with all that was built. The factory must start no threads.
2. A process runs one job at a time, and others after it as long as each gave a result, soon. So a job costs a
   millisecond, a kill a fork, and nothing that went wrong is left to the next.
3. A job's limits are timers and limits of its process. The kernel ends what goes over them, whatever native code
   is doing, and also when nobody is left who waits for it.
4. The template ends when its parent does, and its jobs with it. Signals for the server are the parent's business.
5. A job that takes longer than a moment goes on with what processor time others leave.
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
