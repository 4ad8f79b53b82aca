"""The filter of system calls that a sandboxed program runs under, assembled here for the machine at hand.

It is a program for the kernel's packet filter (classic BPF), in the form that `bwrap --seccomp` reads. The kernel runs
it at each system call, for the program and all that it starts, and nothing inside can take it off. What
is refused fails with an error number, so that honest code can fall back; nobody is killed.
"""

from __future__ import annotations

import struct
import sys
from functools import cache

from context_bench.sandbox.syscalls import MACHINES, NEWEST, NUMBERS, REFUSED

__all__ = ["build_filter"]

_Step = tuple[int, int, int, int]
"""An instruction: code, steps to skip if a comparison holds, steps to skip if not, operand."""

_LOAD, _AND, _RETURN = 0x20, 0x54, 0x06
_IF_EQUAL, _IF_ABOVE, _IF_ANY_BIT = 0x15, 0x25, 0x45

_NUMBER, _MACHINE = 0, 4
"""Where `struct seccomp_data` has the number of the call and the machine that it is made for."""

_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_ERRORS = {"EPERM": 1, "ENOSYS": 38, "EPROTONOSUPPORT": 93, "EAFNOSUPPORT": 97}
"""Error numbers of Linux, the same on both machines."""

_NEW_NAMESPACES = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET; clone cannot make others."""

_AF_UNIX, _AF_INET, _AF_INET6 = 1, 2, 10
_SOCK_STREAM, _SOCK_DGRAM, _SOCK_TYPE = 1, 2, 0xF
_DEFAULT, _IPPROTO_TCP, _IPPROTO_UDP = 0, 6, 17
_PER_LINUX, _PER_QUERY = 0, 0xFFFFFFFF


@cache
def build_filter(machine: str) -> bytes | None:
    """Build the filter for a machine, named as by `uname -m`; None for one whose system calls are not listed.

    It is short enough for a pipe of one page, so that writing it to a pipe never waits.
    """
    if machine not in MACHINES or sys.maxsize < 1 << 32:  # a 32-bit Python makes the calls of another machine
        return None
    return b"".join(struct.pack("<HBBI", *step) for step in _assemble(machine))


def _assemble(machine: str) -> list[_Step]:
    """Check the machine, then the number: those above NEWEST, which includes all of x32, are unknown to us."""
    column = list(MACHINES).index(machine)
    steps = [(_LOAD, 0, 0, _MACHINE), *_unless(MACHINES[machine], [_fail("ENOSYS")])]
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
    """Load the lower half of an argument, which is all that the kernel reads of those checked here."""
    return _LOAD, 0, 0, 16 + 8 * index


def _if(value: int, then: list[_Step]) -> list[_Step]:
    return [(_IF_EQUAL, 0, len(then), value), *then]


def _unless(value: int, then: list[_Step]) -> list[_Step]:
    return [(_IF_EQUAL, len(then), 0, value), *then]


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
"""TCP and UDP, which end at the sandbox's own loopback: servers and clients of one program find each other."""

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
