"""The filter of system calls for sandboxed programs, assembled for the current machine.

The filter is a program for the kernel's packet filter (classic BPF), in the form that `bwrap --seccomp` reads. The
kernel runs the filter at each system call of the program and its descendants, and nothing in the sandbox can remove the
filter. Refused calls fail with an error number, so that honest code can fall back; no process is killed.
"""

from __future__ import annotations

import struct
import sys
from functools import cache

MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""The kernel's number for a machine (AUDIT_ARCH_*), by its name in `uname -m`; in the order of NUMBERS."""

NEWEST = 456  # the newest call in the lists, futex_requeue of Linux 6.7; C libraries do without newer ones

_Numbers = dict[str, tuple[int | None, int | None]]

_KEYS: _Numbers = {"add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219)}
"""The calls for the kernel's keyrings, which belong to the user's session and outlive a program."""

_NAMESPACES_AND_MOUNTS: _Numbers = {
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
    "chroot": (161, 51), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
}  # fmt: skip
"""Calls for namespaces and mounts: root in a new namespace reaches parts of the kernel closed to other users."""

_MEMORY_BESIDE_THE_LIMIT: _Numbers = {
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "shmdt": (67, 197), "semget": (64, 190),
    "semop": (65, 193), "semctl": (66, 191), "semtimedop": (220, 192), "msgget": (68, 186), "msgsnd": (69, 189),
    "msgrcv": (70, 188), "msgctl": (71, 187), "mq_open": (240, 180), "mq_unlink": (241, 181),
}  # fmt: skip
"""System V IPC and message queues: their memory belongs to no process. POSIX shared memory is in files in /dev/shm."""

_MEMORY_FILES: _Numbers = {"memfd_create": (319, 279), "memfd_secret": (447, 447)}
"""Calls for files in memory, whose size no file system limits. If these calls fail, libraries use other files."""

_OTHER_PROCESSES: _Numbers = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "process_madvise": (440, 440), "process_mrelease": (448, 448), "pidfd_getfd": (438, 438), "kcmp": (312, 272),
    "migrate_pages": (256, 238), "move_pages": (279, 239),
}  # fmt: skip

_PROGRAMS_IN_THE_KERNEL: _Numbers = {
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "create_module": (174, None),
    "init_module": (175, 105), "delete_module": (176, 106), "get_kernel_syms": (177, None),
    "query_module": (178, None), "finit_module": (313, 273), "kexec_load": (246, 104), "kexec_file_load": (320, 294),
}  # fmt: skip
"""Calls with a history of kernel vulnerabilities, and calls that only root needs."""

_QUEUES_TO_THE_KERNEL: _Numbers = {
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
}  # fmt: skip
"""Requests through io_uring would bypass this filter."""

_FILES_BY_HANDLE: _Numbers = {
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263), "lookup_dcookie": (212, 18),
}  # fmt: skip

_ADMINISTRATION: _Numbers = {
    "syslog": (103, 116), "acct": (163, 89), "quotactl": (179, 60), "quotactl_fd": (443, 443), "swapon": (167, 224),
    "swapoff": (168, 225), "reboot": (169, 142), "nfsservctl": (180, 42), "vhangup": (153, 58),
    "sethostname": (170, 161), "setdomainname": (171, 162), "settimeofday": (164, 170), "clock_settime": (227, 112),
    "clock_adjtime": (305, 266), "adjtimex": (159, 171), "mbind": (237, 235), "set_mempolicy": (238, 237),
    "get_mempolicy": (239, 236), "set_mempolicy_home_node": (450, 450), "modify_ldt": (154, None),
    "iopl": (172, None), "ioperm": (173, None), "uselib": (134, None), "ustat": (136, None), "sysfs": (139, None),
    "_sysctl": (156, None),
}  # fmt: skip

_CHECKED_BY_ARGUMENT: _Numbers = {
    "clone": (56, 220), "socket": (41, 198), "socketpair": (53, 199), "personality": (135, 92),
}  # fmt: skip
"""Calls that are allowed depending on their arguments."""

_FALLEN_BACK_FROM: _Numbers = {"clone3": (435, 435), **_MEMORY_FILES, **_QUEUES_TO_THE_KERNEL}
"""Libraries work without these calls if the kernel reports that it does not have them. The flags of clone3 are behind
a pointer, where no filter can look; the C library then uses clone, whose flags are in a register."""

_NOT_ALLOWED: _Numbers = {
    **_KEYS, **_NAMESPACES_AND_MOUNTS, **_MEMORY_BESIDE_THE_LIMIT, **_OTHER_PROCESSES, **_PROGRAMS_IN_THE_KERNEL,
    **_FILES_BY_HANDLE, **_ADMINISTRATION,
}  # fmt: skip

NUMBERS: _Numbers = {**_NOT_ALLOWED, **_FALLEN_BACK_FROM, **_CHECKED_BY_ARGUMENT}  # every call that the filter looks at

REFUSED: dict[str, str] = {**dict.fromkeys(_NOT_ALLOWED, "EPERM"), **dict.fromkeys(_FALLEN_BACK_FROM, "ENOSYS")}
"""Calls that always fail, each with the name of the error."""


_Step = tuple[int, int, int, int]
"""An instruction: code, steps to skip if a comparison holds, steps to skip if not, operand."""

_LOAD, _AND, _RETURN = 0x20, 0x54, 0x06
_IF_EQUAL, _IF_ABOVE, _IF_ANY_BIT = 0x15, 0x25, 0x45

_NUMBER, _MACHINE = 0, 4  # where `struct seccomp_data` has the number of the call and the machine that it is made for

_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_ERRORS = {"EPERM": 1, "ENOSYS": 38, "EPROTONOSUPPORT": 93, "EAFNOSUPPORT": 97}
"""Error numbers of Linux, the same on both machines."""

_NEW_NAMESPACES = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET; clone can make no other namespaces."""

_AF_UNIX, _AF_INET, _AF_INET6 = 1, 2, 10
_SOCK_STREAM, _SOCK_DGRAM, _SOCK_TYPE = 1, 2, 0xF
_DEFAULT, _IPPROTO_TCP, _IPPROTO_UDP = 0, 6, 17
_PER_LINUX, _PER_QUERY = 0, 0xFFFFFFFF


@cache
def build_filter(machine: str) -> bytes | None:
    """Build the filter for a machine, named as by `uname -m`; None if its system calls are not listed. The filter fits
    into a pipe of one page, so that writing it never blocks.
    """
    if machine not in MACHINES or sys.maxsize < 1 << 32:  # a 32-bit Python makes the calls of another machine
        return None
    return b"".join(struct.pack("<HBBI", *step) for step in _assemble(machine))


def _assemble(machine: str) -> list[_Step]:
    """Check the machine, then the number of the call; numbers above NEWEST, which include all of x32, are unknown."""
    column = list(MACHINES).index(machine)
    steps = [(_LOAD, 0, 0, _MACHINE), (_IF_EQUAL, 1, 0, MACHINES[machine]), _fail("ENOSYS")]
    steps += [(_LOAD, 0, 0, _NUMBER), (_IF_ABOVE, 0, 1, NEWEST), _fail("ENOSYS")]
    for name, numbers in NUMBERS.items():
        number = numbers[column]
        if number is not None:
            steps += _if(number, [_fail(REFUSED[name])] if name in REFUSED else _BY_ARGUMENT[name])
    return [*steps, _allow()]


def _allow() -> _Step:
    return _RETURN, 0, 0, _ALLOW


def _fail(error: str) -> _Step:
    return _RETURN, 0, 0, _ERROR | _ERRORS[error]


def _load_argument(index: int) -> _Step:
    """Load the lower half of an argument; of the arguments checked here, the kernel reads only this half."""
    return _LOAD, 0, 0, 16 + 8 * index


def _if(value: int, then: list[_Step]) -> list[_Step]:
    return [(_IF_EQUAL, 0, len(then), value), *then]


def _allow_only(values: list[int], error: str) -> list[_Step]:
    return [step for value in values for step in _if(value, [_allow()])] + [_fail(error)]


_INTERNET_SOCKET = [
    _load_argument(1),
    (_AND, 0, 0, _SOCK_TYPE),  # without SOCK_CLOEXEC and SOCK_NONBLOCK
    (_IF_EQUAL, 2, 0, _SOCK_STREAM),
    (_IF_EQUAL, 1, 0, _SOCK_DGRAM),
    _fail("EPROTONOSUPPORT"),
    _load_argument(2),
    *_allow_only([_DEFAULT, _IPPROTO_TCP, _IPPROTO_UDP], "EPROTONOSUPPORT"),
]
"""TCP and UDP: packets stay on the sandbox's own loopback, so servers and clients of one program can connect."""

_BY_ARGUMENT: dict[str, list[_Step]] = {
    "clone": [_load_argument(0), (_IF_ANY_BIT, 0, 1, _NEW_NAMESPACES), _fail("EPERM"), _allow()],
    "socket": [
        _load_argument(0),
        *_if(_AF_INET, _INTERNET_SOCKET),
        *_if(_AF_INET6, _INTERNET_SOCKET),
        *_allow_only([_AF_UNIX], "EAFNOSUPPORT"),
    ],
    "socketpair": [_load_argument(0), *_allow_only([_AF_UNIX], "EAFNOSUPPORT")],
    "personality": [_load_argument(0), *_allow_only([_PER_LINUX, _PER_QUERY], "EPERM")],
}
