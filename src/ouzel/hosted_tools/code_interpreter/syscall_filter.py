"""Makes the seccomp filter of a sandbox, which refuses dangerous calls of the kernel.

The namespaces of a sandbox are the first wall. The filter is the second: it takes away calls that
namespaces do not cover (keyrings, the sockets of the hypervisor) and calls in which most escapes
from namespaces were found (mounts, io_uring, bpf, user namespaces).

The program is written in the classic BPF of the kernel: eight bytes for each instruction, which are
a code, two jumps and a constant (see linux/filter.h). It is given to bubblewrap as it is.
"""

import errno
import platform
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

# Names, with the numbers on x86-64 and on 64-bit ARM; None where the call does not exist.
_REFUSED: dict[str, tuple[int, int | None]] = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "ioperm": (173, None),
    "iopl": (172, None),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "lookup_dcookie": (212, 18),
    "migrate_pages": (256, 238),
    "modify_ldt": (154, None),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "move_pages": (279, 239),
    "name_to_handle_at": (303, 264),
    "nfsservctl": (180, 42),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "personality": (135, 92),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "sysfs": (139, None),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "uselib": (134, None),
    "userfaultfd": (323, 282),
    "vhangup": (153, 58),
    "vmsplice": (278, 75),
}
# Calls that programs try, and do without if the kernel lacks them. Memory of the second line would
# belong to no process, so the limits could not see it.
_MISSING: dict[str, tuple[int, int | None]] = {
    "clone3": (435, 435),  # its flags lie in memory, where a filter cannot read them
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "mq_open": (240, 180),
    "msgget": (68, 186),
    "semget": (64, 190),
    "shmget": (29, 194),
}
_NEWEST = 456  # later calls are not known here; the numbers are the same everywhere
_CLONE = (56, 220)
_SOCKET = (41, 198)
_IOCTL = (16, 29)

_NEW_NAMESPACES = 0x7E020080  # CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
_FAMILIES = (1, 2, 10)  # AF_UNIX, AF_INET, AF_INET6
_TYPING = (0x5412, 0x541C)  # TIOCSTI and TIOCLINUX put keys into a terminal


@dataclass(frozen=True, slots=True)
class _Machine:
    column: int  # column in the tables above
    audit_arch: int
    ends_at: int  # numbers from here on belong to another way of calling


_MACHINES = {
    "x86_64": _Machine(0, 0xC000003E, 0x40000000),
    "aarch64": _Machine(1, 0xC00000B7, 0xFFFFFFFF),
}

_LOAD, _EQUAL, _GREATER_EQUAL, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER_AT, _ARCH_AT, _ARGUMENTS_AT = 0, 4, 16  # offsets in struct seccomp_data
_ALLOW, _KILL, _FAIL = 0x7FFF0000, 0x80000000, 0x00050000
_Instruction = tuple[int, int, int, int]


def make_filter(machine: str | None = None) -> bytes | None:
    """Returns the filter for a kind of processor; None if its numbers are not known here."""
    found = _MACHINES.get(machine or platform.machine())
    if found is None:
        return None
    return b"".join(struct.pack("=HBBI", *each) for each in _write(found))


def _write(machine: _Machine) -> Iterator[_Instruction]:
    yield (_LOAD, 0, 0, _ARCH_AT)
    yield (_EQUAL, 1, 0, machine.audit_arch)
    yield (_RETURN, 0, 0, _KILL)
    yield (_LOAD, 0, 0, _NUMBER_AT)
    yield (_GREATER_EQUAL, 0, 1, machine.ends_at)
    yield (_RETURN, 0, 0, _KILL)
    yield (_GREATER_EQUAL, 0, 1, _NEWEST + 1)
    yield _fail(errno.ENOSYS)
    for table, error in ((_REFUSED, errno.EPERM), (_MISSING, errno.ENOSYS)):
        for numbers in table.values():
            number = numbers[machine.column]
            if number is not None:
                yield (_EQUAL, 0, 1, number)
                yield _fail(error)
    yield from _check(_CLONE[machine.column], 0, [(_ANY_BIT, _NEW_NAMESPACES)], errno.EPERM)
    yield from _check(_IOCTL[machine.column], 1, [(_EQUAL, each) for each in _TYPING], errno.EPERM)
    yield (_EQUAL, 0, len(_FAMILIES) + 2, _SOCKET[machine.column])
    yield (_LOAD, 0, 0, _ARGUMENTS_AT)
    for position, family in enumerate(_FAMILIES):
        yield (_EQUAL, len(_FAMILIES) - position, 0, family)
    yield _fail(errno.EAFNOSUPPORT)
    yield (_RETURN, 0, 0, _ALLOW)


def _check(
    number: int, argument: int, tests: Iterable[tuple[int, int]], error: int
) -> Iterator[_Instruction]:
    """Yields instructions that fail a call if one test of the argument's lower half is true.

    The call is allowed otherwise.
    """
    listed = list(tests)
    yield (_EQUAL, 0, len(listed) + 3, number)
    yield (_LOAD, 0, 0, _ARGUMENTS_AT + 8 * argument)
    for position, (test, value) in enumerate(listed):
        yield (test, len(listed) - position, 0, value)
    yield (_RETURN, 0, 0, _ALLOW)
    yield _fail(error)


def _fail(error: int) -> _Instruction:
    return (_RETURN, 0, 0, _FAIL | error)
