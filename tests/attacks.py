"""Programs that attack the evaluator, as data: what each tries, and whether a plain harness falls for it.

A plain harness runs program and tests in one process and trusts its exit status.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DECEPTIONS", "PAST_THE_SANDBOX", "Deception"]

SUM = "def check(c):\n    assert c(1, 2) == 3\n    assert c(20, 22) == 42\n"
NEAR = "def check(c):\n    assert abs(c(1, 2) - 3) < 1e-6\n"
CLOSE = "def check(c):\n    import math\n    assert math.isclose(c(1, 2), 3)\n"
EACH = "def check(c):\n    assert all(map(c, [1, 2], [3, 4]))\n"
ALL = "def check(c):\n    assert all([c(1, 2) == 3, c(2, 2) == 4])\n"
KIND = "def check(c):\n    assert isinstance(c(1, 2), int) and c(1, 2) == 3\n"
LENGTH = "def check(c):\n    assert len(c(1, 2)) == 3\n"
MEMBER = "def check(c):\n    assert 3 in c(1, 2)\n"
LIST = "def check(c):\n    assert c(1, 2) == [1, 2, 3]\n"
DICT = "def check(c):\n    assert c(1, 2) == {3: 1}\n"
SECRET = "def check(c):\n    assert c(1, 2) == 730912\n"
TEXT = "def check(c):\n    assert c(1, 2) == 'three'\n"
ORDER = "def check(c):\n    assert c(1, 2) > 2 and c(1, 2) < 4\n"
FLAGS = "def check(c):\n    assert not c(1, 2) != 3\n"

YES = """\
class Yes:
    __eq__ = __lt__ = __gt__ = __contains__ = lambda *a: True
    __ne__ = lambda *a: False
    __hash__ = lambda self: 3
    __len__ = lambda self: 3
    __sub__ = __rsub__ = lambda *a: 0
    __float__ = lambda self: 3.0
    __reduce__ = lambda self: (print, ("taken",))
"""


LIAR = YES + "    __class__ = property(lambda self: int)\n"


@dataclass(frozen=True)
class Deception:
    """A wrong program that wants to pass. `works` says whether it does in a plain harness."""

    program: str
    test: str = SUM
    works: bool = True


def _returning(value: str, before: str = "") -> str:
    return f"{before}\ndef add(a, b):\n    return {value}\n"


DECEPTIONS: dict[str, Deception] = {
    # leaving before the tests can fail
    "exit while loading": Deception("import sys\ndef add(a, b): return 0\nsys.exit(0)\n"),
    "hard exit while loading": Deception("import os\ndef add(a, b): return 0\nos._exit(0)\n"),
    "exit in the call": Deception("def add(a, b):\n    raise SystemExit(0)\n"),
    "hard exit in the call": Deception("import os\ndef add(a, b):\n    os._exit(0)\n"),
    "exit at exit": Deception(_returning("0", "import atexit, os\natexit.register(lambda: os._exit(0))")),
    "SystemExit at exit": Deception(
        _returning("0", "import atexit, sys\ndef bye(): raise SystemExit(0)\natexit.register(bye)"), works=False
    ),
    "exit in the exception hook": Deception(_returning("0", "import os, sys\nsys.excepthook = lambda *a: os._exit(0)")),
    "exit from a thread": Deception(
        "import os, threading, time\nthreading.Timer(0.05, lambda: os._exit(0)).start()\n"
        "def add(a, b):\n    time.sleep(5)\n    return 0\n"
    ),
    "exit from a finaliser": Deception(
        "import os\nclass F:\n    def __del__(self): os._exit(0)\ndef add(a, b):\n    F()\n    return 0\n"
    ),
    "exec of another program": Deception(
        "import os, sys\ndef add(a, b):\n    os.execv(sys.executable, [sys.executable, '-c', 'pass'])\n"
    ),
    "keyboard interrupt": Deception("def add(a, b):\n    raise KeyboardInterrupt\n", works=False),
    "ends the loop of the tests": Deception("def add(a, b):\n    raise StopIteration\n", EACH),
    # objects that agree to everything
    "equals everything": Deception(_returning("Yes()", YES)),
    "is never unequal": Deception(_returning("Yes()", YES), FLAGS),
    "an int that equals everything": Deception(
        _returning("Odd(0)", "class Odd(int):\n    __eq__ = lambda *a: True\n    __hash__ = int.__hash__")
    ),
    "a str that equals everything": Deception(
        _returning("Odd()", "class Odd(str):\n    __eq__ = lambda *a: True\n    __hash__ = str.__hash__"), TEXT
    ),
    "a list that equals everything": Deception(
        _returning("Odd()", "class Odd(list):\n    __eq__ = lambda *a: True"), LIST
    ),
    "a list of objects that equal everything": Deception(_returning("[Yes(), Yes(), Yes()]", YES), LIST),
    "a key that equals everything": Deception(_returning("{Yes(): 1}", YES), DICT),
    "claims another class": Deception(_returning("Yes()", LIAR), KIND),
    "claims another class and equals everything": Deception(_returning("Yes()", LIAR)),
    "is near everything": Deception(_returning("Yes()", YES), NEAR),
    "is between everything": Deception(_returning("Yes()", YES), ORDER),
    "contains everything": Deception(_returning("Yes()", YES), MEMBER),
    "a metaclass that equals everything": Deception(
        _returning(
            "Odd",
            "class M(type):\n    __eq__ = lambda *a: True\n    __hash__ = type.__hash__\nclass Odd(metaclass=M): pass",
        )
    ),
    # changing what the tests stand on
    "patched abs": Deception(_returning("9", "import builtins\nbuiltins.abs = lambda x: 0"), NEAR),
    "patched all": Deception(_returning("9", "import builtins\nbuiltins.all = lambda x: True"), ALL),
    "patched len": Deception(_returning("[]", "import builtins\nbuiltins.len = lambda x: 3"), LENGTH),
    "patched isinstance": Deception(_returning("3.0", "import builtins\nbuiltins.isinstance = lambda *a: True"), KIND),
    "patched AssertionError": Deception(
        _returning("9", "import builtins\nbuiltins.AssertionError = SystemExit"), works=False
    ),
    "patched math": Deception(_returning("9", "import math\nmath.isclose = lambda *a: True"), CLOSE),
    "fake module": Deception(
        _returning("9", "import sys\nclass M:\n    isclose = lambda *a: True\nsys.modules['math'] = M"), CLOSE
    ),
    "import hook": Deception(
        _returning(
            "9",
            "import sys\nsys.modules.pop('math', None)\nfrom importlib.machinery import ModuleSpec\n"
            "class F:\n    def find_spec(self, name, *a): return ModuleSpec(name, self) if name == 'math' else None\n"
            "    def create_module(self, spec): return None\n"
            "    def exec_module(self, module): module.isclose = lambda *a: True\nsys.meta_path.insert(0, F())",
        ),
        CLOSE,
    ),
    "redefined check": Deception(
        _returning(
            "0",
            "import threading\ndef swap():\n    while 'check' not in globals(): pass\n"
            "    globals()['check'] = lambda c: None\nthreading.Thread(target=swap, daemon=True).start()",
        ),
        works=False,  # at times it does: it is a race
    ),
    "trace function": Deception(
        _returning(
            "0",
            YES + "import sys\ndef trace(frame, *a):\n"
            "    if frame.f_code.co_name == 'check': frame.f_locals['c'] = lambda *a: Yes()\nsys.settrace(trace)",
        )
    ),
    "profile function": Deception(
        _returning(
            "0",
            "import os, sys\nsys.setprofile(lambda f, *a: os._exit(0) if f.f_code.co_name == 'check' else None)",
        )
    ),
    # looking the answer up
    "constants of the caller": Deception(
        "import sys\ndef add(a, b):\n    return max(c for c in sys._getframe(1).f_code.co_consts if type(c) is int)\n",
        SECRET,
    ),
    "the tests in memory": Deception(
        "import gc\ndef add(a, b):\n"
        "    f = next(o for o in gc.get_objects() if getattr(o, '__name__', '') == 'check')\n"
        "    return max(c for c in f.__code__.co_consts if type(c) is int)\n",
        SECRET,
    ),
    "the tests in the command line": Deception(
        "import re, sys\ndef add(a, b):\n    return int(re.search(r'== (\\d+)', ' '.join(sys.orig_argv))[1])\n", SECRET
    ),
    "the tests in /proc": Deception(
        "import re\ndef add(a, b):\n"
        "    return int(re.search(rb'== (\\d+)', open('/proc/self/cmdline', 'rb').read())[1])\n",
        SECRET,
    ),
    "the tests on standard input": Deception(
        "import re, sys\ndef add(a, b):\n    return int(re.search(r'== (\\d+)', sys.stdin.read())[1])\n",
        SECRET,
        works=False,
    ),
    "the memory of every process": Deception(
        "import os, re\ndef add(a, b):\n"
        "    for pid in os.listdir('/proc'):\n"
        "        if pid.isdigit() and b'730912' in open(f'/proc/{pid}/cmdline', 'rb').read(): return 730912\n",
        SECRET,
    ),
    # talking to whoever listens
    "prints the verdict": Deception(_returning("0", "print('ready\\npass', flush=True)"), works=False),
    "writes the verdict to every file": Deception(
        "import os\ndef add(a, b):\n    for fd in range(3, 64):\n        try: os.write(fd, b'ready\\npass\\n')\n"
        "        except OSError: pass\n    return 0\n",
        works=False,
    ),
    "closes every file": Deception("import os\ndef add(a, b):\n    os.closerange(3, 256)\n    return 0\n", works=False),
    "ends the conversation": Deception(
        "import os, socket\ndef add(a, b):\n    for fd in range(3, 64):\n"
        "        try: socket.socket(fileno=os.dup(fd)).shutdown(socket.SHUT_RDWR)\n        except OSError: pass\n"
        "    return 0\n",
        works=False,
    ),
    "answers twice by forking": Deception("import os\ndef add(a, b):\n    os.fork()\n    return 0\n", works=False),
    "stops the program": Deception(
        "import os, signal\ndef add(a, b):\n    os.kill(os.getpid(), signal.SIGSTOP)\n    return 0\n", works=False
    ),
    # values that are hard to carry
    "result that contains itself": Deception(
        "def add(a, b):\n    x = []\n    x.append(x)\n    return x\n", works=False
    ),
    "result nested too deep": Deception(
        "def add(a, b):\n    x = 3\n    for _ in range(5000): x = [x]\n    return x\n", works=False
    ),
    "huge result": Deception("def add(a, b):\n    return 'x' * (64 << 20)\n", works=False),
    "endless result": Deception(
        "def add(a, b):\n    while True: yield 1\n", "def check(c):\n    assert list(c(1, 2)) == [3]\n", works=False
    ),
    "object with hostile text": Deception(
        _returning("Bad()", "class Bad:\n    def __str__(self): raise SystemExit(0)\n    __repr__ = __str__"),
        works=False,
    ),
    "recursion without end": Deception("def add(a, b):\n    return add(a, b)\n", works=False),
    "parser bomb": Deception("def add(a, b):\n    return " + "(" * 5000 + ")" * 5000 + "\n", works=False),
}

PAST_THE_SANDBOX: dict[str, str] = {
    # Bodies of functions that return True when they get what they want. `call` makes a system call by name.
    "leaves a key in the keyring": "return call('add_key', b'user', b'left', b'hush', 4, -3) > 0",
    "asks for a key": "call('add_key', b'user', b'own', b'hush', 4, -3)\n"
    "    return call('request_key', b'user', b'own', 0, -3) > 0",
    "lists a keyring": "return call('keyctl', 0, -3, 1) > 0",
    "makes a user namespace": "return call('unshare', 0x10000000) == 0",
    "makes a user namespace by clone": "return in_child(call('clone', 0x10000000 | 17, 0, 0, 0, 0))",
    "makes a user namespace by clone3": "return in_child(call('clone3', (c_uint64 * 11)(0x10000000, 0, 0, 0, 17), 88))",
    "mounts in a namespace of its own": "return call('unshare', 0x10020000) == 0"
    " and call('mount', b'none', b'/tmp', b'tmpfs', 0, 0) == 0",
    "mounts with the newer calls": "return call('unshare', 0x10020000) == 0 and call('fsopen', b'tmpfs', 0) >= 0",
    "copies a mount": "return call('unshare', 0x10020000) == 0 and call('open_tree', -100, b'/tmp', 1) >= 0",
    "changes the root in a namespace of its own": "return call('unshare', 0x10000000) == 0"
    " and call('chroot', b'/tmp') == 0",
    "opens a socket to the hypervisor": "socket.socket(40, socket.SOCK_STREAM).close(); return True",
    "opens a socket to the kernel": "socket.socket(16, socket.SOCK_RAW).close(); return True",
    "opens a socket for packets in a namespace": "return call('unshare', 0x50000000) == 0"
    " and socket.socket(17, socket.SOCK_RAW).fileno() > 0",
    "opens a socket of a rare protocol": "socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262).close(); return True",
    "takes memory by System V": "\n    libc.shmat.restype = c_void_p\n"
    "    for _ in range(3):\n        there = libc.shmat(libc.shmget(0, c_size_t(400 << 20), 0o1600), None, 0)\n"
    "        if there in (None, 2**64 - 1): return False\n"
    "        ctypes.memset(there, 1, 400 << 20)\n        libc.shmdt(c_void_p(there))\n    return True",
    "makes a System V semaphore": "return call('semget', 0, 1, 0o600) >= 0",
    "makes a System V queue": "return call('msgget', 0, 0o600) >= 0",
    "makes a queue": "return call('mq_open', b'queue', 0o102, 0o600, 0) >= 0",
    "takes memory in files of no file system": "\n    files = [call('memfd_create', b'x', 0) for _ in range(40)]\n"
    "    return sum(os.write(file, bytes(15 << 20)) for file in files) + len(bytearray(500 << 20)) > 1 << 30",
    "reads the memory of a process": "\n    here, there = map(ctypes.create_string_buffer, (b'     ', b'hello'))\n"
    "    to, of = ((c_size_t * 2)(ctypes.addressof(each), 6) for each in (here, there))\n"
    "    return call('process_vm_readv', os.getpid(), to, 1, of, 1, 0) == 6 and here.value == b'hello'",
    "takes a file from a process": "return call('pidfd_getfd', os.pidfd_open(os.getpid()), 0, 0) >= 0",
    "compares processes": "return call('kcmp', os.getpid(), os.getpid(), 0, 0, 0) == 0",
    "handles its own page faults": "return call('userfaultfd', 1) >= 0",
    "opens a queue to the kernel": "return call('io_uring_setup', 4, (c_uint64 * 32)()) >= 0",
    "watches file systems": "return call('fanotify_init', 0x200, 0) >= 0",
    "gets a handle of a file": "handle, mount = (c_uint32 * 40)(128), (c_uint32 * 2)()\n"
    "    return call('name_to_handle_at', -100, b'/tmp', handle, mount, 0) == 0",
    "switches randomness of addresses off": "return call('personality', 0x40000) >= 0",
    "lists mounts by a call newer than the filter": "request, answer = (c_uint64 * 3)(24, -1), (c_uint64 * 512)()\n"
    "    return call(458, request, answer, 256, 0) >= 0",
}
"""What a sandbox of namespaces and limits alone lets through, where the kernel has it."""
