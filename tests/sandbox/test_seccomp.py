"""The filter of system calls: run step by step for both machines, and by the kernel for the one at hand."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from attacks import PAST_THE_SANDBOX
from context_bench.sandbox import ProgramVerdict
from context_bench.sandbox.seccomp import MACHINES, NUMBERS, build_filter
from sandboxed import REACHED, judge, needs_sandbox

ALLOWED, EPERM, ENOSYS, EPROTONOSUPPORT, EAFNOSUPPORT = 0, 1, 38, 93, 97
X86_64, AARCH64, I386, ARM = 0xC000003E, 0xC00000B7, 0x40000003, 0x40000028
ALLOW_ALL = struct.pack("<HBBI", 0x06, 0, 0, 0x7FFF0000)


def ask(program: bytes, arch: int, number: int, *arguments: int) -> int:
    """What the filter says to a call: 0 or an error number. A packet filter as the kernel runs it."""
    data = struct.pack("<IIQ6Q", number, arch, 0, *arguments, *[0] * (6 - len(arguments)))
    steps = list(struct.iter_unpack("<HBBI", program))
    at, register = 0, 0
    while True:
        code, held, held_not, operand = steps[at]
        at += 1
        if code == 0x20:  # BPF_LD | BPF_W | BPF_ABS
            assert operand % 4 == 0
            assert operand < len(data)
            (register,) = struct.unpack_from("<I", data, operand)
        elif code == 0x54:  # BPF_ALU | BPF_AND | BPF_K
            register &= operand
        elif code in (0x15, 0x25, 0x45):  # BPF_JMP with JEQ, JGT or JSET
            holds = {0x15: register == operand, 0x25: register > operand, 0x45: bool(register & operand)}[code]
            at += held if holds else held_not
        else:
            assert code == 0x06  # BPF_RET | BPF_K
            if operand == 0x7FFF0000:  # SECCOMP_RET_ALLOW
                return ALLOWED
            assert operand & 0xFFFF0000 == 0x00050000  # SECCOMP_RET_ERRNO
            return operand & 0xFFFF


def filter_of(machine: str) -> bytes:
    program = build_filter(machine)
    assert program is not None
    return program


REFUSED = {  # name: number on x86_64, number on aarch64, error
    "keyctl": (250, 219, EPERM),
    "add_key": (248, 217, EPERM),
    "request_key": (249, 218, EPERM),
    "unshare": (272, 97, EPERM),
    "setns": (308, 268, EPERM),
    "mount": (165, 40, EPERM),
    "umount2": (166, 39, EPERM),
    "pivot_root": (155, 41, EPERM),
    "mount_setattr": (442, 442, EPERM),
    "shmget": (29, 194, EPERM),
    "shmat": (30, 196, EPERM),
    "msgget": (68, 186, EPERM),
    "semget": (64, 190, EPERM),
    "ptrace": (101, 117, EPERM),
    "bpf": (321, 280, EPERM),
    "perf_event_open": (298, 241, EPERM),
    "userfaultfd": (323, 282, EPERM),
    "open_by_handle_at": (304, 265, EPERM),
    "memfd_create": (319, 279, ENOSYS),
    "io_uring_setup": (425, 425, ENOSYS),
    "clone3": (435, 435, ENOSYS),
    "statmount": (457, 457, ENOSYS),
}

HONEST = {  # what Python and the C library live by
    "read": (0, 63),
    "write": (1, 64),
    "close": (3, 57),
    "fstat": (5, 80),
    "mmap": (9, 222),
    "mprotect": (10, 226),
    "munmap": (11, 215),
    "brk": (12, 214),
    "rt_sigaction": (13, 134),
    "ioctl": (16, 29),
    "dup3": (292, 24),
    "pipe2": (293, 59),
    "sendmsg": (46, 211),
    "execve": (59, 221),
    "exit_group": (231, 94),
    "wait4": (61, 260),
    "kill": (62, 129),
    "fcntl": (72, 25),
    "ftruncate": (77, 46),
    "mknodat": (259, 33),
    "openat": (257, 56),
    "futex": (202, 98),
    "epoll_create1": (291, 20),
    "eventfd2": (290, 19),
    "timerfd_create": (283, 85),
    "prctl": (157, 167),
    "prlimit64": (302, 261),
    "setresuid": (117, 147),
    "getrandom": (318, 278),
    "clock_gettime": (228, 113),
    "sched_getaffinity": (204, 123),
    "pidfd_open": (434, 434),
    "close_range": (436, 436),
    "faccessat2": (439, 439),
}

BOTH = pytest.mark.parametrize(("machine", "arch", "column"), [("x86_64", X86_64, 0), ("aarch64", AARCH64, 1)])


@BOTH
def test_calls_by_number(machine: str, arch: int, column: int) -> None:
    program = filter_of(machine)
    told = {name: ask(program, arch, numbers[column]) for name, numbers in REFUSED.items()}
    assert told == {name: numbers[2] for name, numbers in REFUSED.items()}
    assert {name: ask(program, arch, numbers[column]) for name, numbers in HONEST.items()} == dict.fromkeys(HONEST, 0)


@BOTH
def test_calls_made_for_another_machine_are_refused(machine: str, arch: int, column: int) -> None:
    program = filter_of(machine)
    for other in {X86_64, AARCH64, I386, ARM} - {arch}:
        assert {ask(program, other, numbers[column]) for numbers in HONEST.values()} == {ENOSYS}
    x32 = 0x40000000
    assert {ask(program, arch, x32 | numbers[column]) for numbers in HONEST.values()} == {ENOSYS}
    assert ask(program, arch, 0xFFFFFFFF) == ENOSYS


@BOTH
def test_calls_by_argument(machine: str, arch: int, column: int) -> None:
    program = filter_of(machine)

    def told(name: str, *arguments: int) -> int:
        number = {"clone": (56, 220), "socket": (41, 198), "socketpair": (53, 199), "personality": (135, 92)}[name]
        return ask(program, arch, number[column], *arguments)

    fork, thread, vfork = 0x01200011, 0x003D0F00, 0x00004111
    assert [told("clone", flags) for flags in (fork, thread, vfork)] == [ALLOWED] * 3
    namespaces = (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000)
    assert [told("clone", 17 | flag) for flag in namespaces] == [EPERM] * 7

    unix, inet, inet6, cloexec_nonblock = 1, 2, 10, 0o2004000
    assert [told("socket", unix, kind | cloexec_nonblock) for kind in (1, 2, 5)] == [ALLOWED] * 3
    for family in (inet, inet6):
        assert [told("socket", family, *rest) for rest in ((1, 0), (1, 6), (2, 0), (2, 17))] == [ALLOWED] * 4
        assert told("socket", family, 1 | cloexec_nonblock, 6) == ALLOWED
        raw_icmp_sctp_mptcp = ((3, 1), (3, 255), (2, 1), (1, 132), (5, 132), (1, 262), (4, 0))
        assert [told("socket", family, *rest) for rest in raw_icmp_sctp_mptcp] == [EPROTONOSUPPORT] * 7
    others = [family for family in range(64) if family not in (unix, inet, inet6)]
    assert {told("socket", family, 1) for family in [*others, 0xFFFFFFFF]} == {EAFNOSUPPORT}
    assert told("socket", 40 | 1 << 32, 1) == EAFNOSUPPORT  # the kernel ignores the upper half
    assert told("socketpair", unix, 1) == ALLOWED
    assert told("socketpair", 30, 1) == EAFNOSUPPORT

    assert [told("personality", value) for value in (0, 0xFFFFFFFF, 0x40000, 8)] == [ALLOWED, ALLOWED, EPERM, EPERM]


@pytest.mark.parametrize("machine", MACHINES)
def test_a_filter_that_the_kernel_takes(machine: str) -> None:
    steps = list(struct.iter_unpack("<HBBI", filter_of(machine)))
    assert len(filter_of(machine)) <= 4096  # else writing it to a pipe may wait for a reader
    assert steps[-1][0] == 0x06
    for at, (code, held, held_not, _) in enumerate(steps):
        assert code in (0x20, 0x54, 0x15, 0x25, 0x45, 0x06)
        assert at + 1 + max(held, held_not) < len(steps) or code == 0x06


@pytest.mark.parametrize(
    ("column", "header"),
    [(0, "/usr/include/x86_64-linux-gnu/asm/unistd_64.h"), (1, "/usr/include/asm-generic/unistd.h")],
)
def test_numbers_are_those_of_the_headers_of_the_kernel(column: int, header: str) -> None:
    if not Path(header).exists():
        pytest.skip(f"there is no {header} here")
    found = re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", Path(header).read_text())
    known = {name: int(number) for name, number in found}
    newest = max(known.values())
    ours = {name: numbers[column] for name, numbers in NUMBERS.items() if (numbers[column] or 0) <= newest}
    assert ours == {name: known.get(name) for name in ours}


@pytest.mark.parametrize("machine", ["riscv64", "ppc64le", "s390x", "i686", "armv7l", "aarch64_be", ""])
def test_machines_whose_calls_are_not_known(machine: str) -> None:
    assert build_filter(machine) is None


HERE = list(MACHINES).index(os.uname().machine) if os.uname().machine in MACHINES else 0

TOOLS = f"""\
import ctypes, os, socket
from ctypes import c_long, c_size_t, c_uint32, c_uint64, c_void_p
NUMBERS = { {name: numbers[HERE] for name, numbers in NUMBERS.items()}!r}
libc = ctypes.CDLL(None)
libc.syscall.restype = c_long
def call(name, *arguments):
    return libc.syscall(NUMBERS.get(name, name), *(c_long(each) if type(each) is int else each for each in arguments))
def in_child(pid):
    if pid == 0: os._exit(0)
    return pid > 0
"""


@needs_sandbox
@pytest.mark.parametrize("name", PAST_THE_SANDBOX)
def test_what_only_the_filter_holds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = f"{TOOLS}def reach():\n    {PAST_THE_SANDBOX[name]}\n"
    assert judge(program, REACHED, entry="reach").passed is False
    monkeypatch.setattr("context_bench.sandbox.isolation.build_filter", lambda machine: ALLOW_ALL)
    if judge(program, REACHED, entry="reach") != ProgramVerdict(True):
        pytest.skip("here the kernel refuses it without a filter too")


@needs_sandbox
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="two more kinds of calls are known to x86_64 alone")
@pytest.mark.parametrize("code", ["b8 14 00 00 00 cd 80 c3", "b8 27 00 00 40 0f 05 c3"], ids=["i386", "x32"])
def test_calls_of_the_other_kinds(code: str) -> None:
    """Machine code that asks for the process id, by `int 0x80` and by a number of x32."""
    program = (
        f"import ctypes, mmap\ndef reach():\n    memory = mmap.mmap(-1, 4096, prot=7)\n"
        f"    memory.write(bytes.fromhex('{code}'))\n"
        "    return ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(memory)))()\n"
    )
    assert judge(program, "def check(c):\n    assert c() == -38\n", entry="reach") == ProgramVerdict(True)


KEYRING = """\
import ctypes, sys
from context_bench.sandbox import find_isolation, isolation, read_task, run
libc, call = ctypes.CDLL(None), {calls!r}
if libc.syscall(call["keyctl"], 1, None) < 0: sys.exit("no keyrings here")  # a session of its own
if sys.argv[1] == "open": isolation.build_filter = lambda machine: bytes.fromhex("{allow}")
task = read_task({{"test": {test!r}, "entry_point": "reach"}})
leave = "libc.syscall({{0[add_key]}}, b'user', b'left', b'hush', 4, ctypes.c_int(-3)) > 0"
find = "libc.syscall({{0[keyctl]}}, 10, ctypes.c_int(-3), b'user', b'left', 0) > 0"
for body in (leave, find):
    program = "import ctypes\\nlibc = ctypes.CDLL(None)\\ndef reach():\\n    return " + body.format(call) + "\\n"
    print(run(task, [program], find_isolation("auto"), 10.0).passed)
print(eval(find.format(call)))
"""


@needs_sandbox
def test_a_program_leaves_no_key_for_the_next_nor_for_the_host() -> None:
    calls = {name: NUMBERS[name][HERE] for name in ("add_key", "keyctl")}
    script = KEYRING.format(calls=calls, allow=ALLOW_ALL.hex(), test=REACHED)

    def told(mode: str) -> list[str]:
        done = subprocess.run([sys.executable, "-c", script, mode], capture_output=True, text=True, check=False)
        if "no keyrings here" in done.stderr:
            pytest.skip("the kernel has no keyrings here")
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    assert told("open") == ["True", "True", "True"]
    assert told("filtered") == ["False", "False", "False"]
