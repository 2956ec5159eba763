"""The standard streams are not always there: who starts the program may have closed one, or leave before its end."""

import os
import sys


def open_closed_streams() -> None:
    """Opens as nothing what is closed; else the next file or socket would be taken for it."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


def drop_output() -> None:
    """Lets what is still to be written go nowhere, so that the program's end does not fail at it, too."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
