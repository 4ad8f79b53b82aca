"""After huge texts the memory that they took goes back to the system, whenever the last of it becomes free."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from context_bench.core.threads import HUGE_TEXT, FreeMemory

_LEAVE_MEMORY = """
import asyncio, sys
from concurrent.futures import ThreadPoolExecutor
from context_bench.core.threads import HUGE_TEXT, FreeMemory

def measure_memory():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

async def main():
    with ThreadPoolExecutor(1) as threads:
        memory = FreeMemory(threads)
        memory.note_text("x" * HUGE_TEXT)
        blocks = [bytes(100_000) for _ in range(500)]
        pins = [bytes(1_000) for _ in range(10)]  # they lie above the blocks, so that the heap cannot shrink
        full = measure_memory()
        if sys.argv[1] == "late":
            await asyncio.sleep(1.5)  # the first look finds everything in use
        blocks.clear()
        if sys.argv[1] == "late":
            for _ in range(300):
                await asyncio.sleep(0.1)
                if full - measure_memory() > 30_000_000:
                    break
        else:
            memory.close()
        print(full - measure_memory(), len(pins))

asyncio.run(main())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc, and given back by glibc")
@pytest.mark.parametrize("moment", ["late", "at the end"])
def test_memory_is_returned_however_late_it_becomes_free(moment: str) -> None:
    done = subprocess.run([sys.executable, "-c", _LEAVE_MEMORY, moment], capture_output=True, text=True, check=True)
    returned, _ = map(int, done.stdout.split())
    assert returned > 30_000_000, "of 50 MB"


def test_nothing_is_left_to_do_after_the_end() -> None:
    async def run() -> list[bool]:
        with ThreadPoolExecutor(1) as threads:
            memory = FreeMemory(threads)
            for text in ("short", "x" * HUGE_TEXT, "y" * HUGE_TEXT):
                memory.note_text(text)
            timers = list(memory._timers)
            memory.close()
            return [timer.cancelled() for timer in timers]

    assert asyncio.run(run()) == [True] * 4


_USE_MANY_THREADS = """
import ctypes, sys, threading
from context_bench.core.threads import return_memory

def measure_memory():
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

def work():
    small = [bytes(1_000) for _ in range(100)]  # so that the thread has memory of its own
    bytearray(b"x") * 15_000_000
    done.release()
    over.wait()

bytearray(b"x") * 20_000_000
return_memory()
before, done, over = measure_memory(), threading.Semaphore(0), threading.Event()
threads = [threading.Thread(target=work) for _ in range(6)]
for thread in threads:
    thread.start()
    done.acquire()
print(measure_memory() - before)
over.set()
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc, and given back by glibc")
def test_threads_keep_no_large_blocks() -> None:
    done = subprocess.run([sys.executable, "-c", _USE_MANY_THREADS], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 15_000_000, "six threads kept 15 MB each"
