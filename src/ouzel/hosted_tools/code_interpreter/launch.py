"""Prepares a process for a sandbox, then becomes the program that makes the sandbox.

It runs in a Python of its own: the server itself must not change, and a server with much memory
cannot fork fast. Arguments: the settings in JSON, then the command.
"""

import json
import os
import sys


def main() -> None:
    settings = json.loads(sys.argv[1])
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # the kernel ends sandboxes first when memory runs out
    if settings["cgroup"] is not None:
        with open(os.path.join(settings["cgroup"], "cgroup.procs"), "w") as file:
            file.write("0")
    os.nice(settings["nice"])
    uid = settings["uid"]
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    os.chdir("/")
    os.umask(0o077)
    os.execv(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
