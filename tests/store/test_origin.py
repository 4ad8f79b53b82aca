"""Libraries count by their version, compiled modules by their file; where a file lies does not count."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from context_bench.store import origin
from context_bench.store.fingerprints import fingerprint_of
from timing import depends_on_time

CALLS = {
    "at the top": "import own_library\n\ndef system(example):\n    return own_library.cut(example['context'])\n",
    "by a function": "from own_library import cut\n\ndef system(example):\n    return cut(example['context'])\n",
    "by a class": "from own_library import Cutter\n\ndef system(example):\n    return Cutter().cut(example)\n",
    "inside": "def system(example):\n    import own_library\n    return own_library.cut(example['context'])\n",
}
LIBRARY = "def cut(text):\n    return text[:{n}]\nclass Cutter:\n    def cut(self, text):\n        return text\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "site-packages").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path / "site-packages"))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    forget()


def forget() -> None:
    """What a new process would not know."""
    for name in [name for name in sys.modules if name.partition(".")[0] in ("system", "own_library", "own_fast")]:
        del sys.modules[name]
    importlib.invalidate_caches()
    origin._find_version.cache_clear()


def find(folder: Path) -> str | None:
    forget()
    return fingerprint_of(importlib.import_module("system").system)


def install(folder: Path, version: str, *, n: int = 3, name: str = "own_library", lists: str = "RECORD") -> None:
    """A library as an installer leaves it, in place of the version before."""
    site = folder / "site-packages"
    for old in site.glob("*.dist-info"):
        shutil.rmtree(old)
    (site / "own_library").mkdir(exist_ok=True)
    (site / "own_library" / "__init__.py").write_text(LIBRARY.format(n=n))
    record = site / f"{name}-{version}.dist-info"
    record.mkdir()
    (record / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n")
    listed = {"RECORD": f"own_library/__init__.py,sha256={n},9\n", "top_level.txt": "own_library\n"}
    (record / lists).write_text(listed[lists])


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", ["own_library", "another_name"])
@pytest.mark.parametrize("lists", ["RECORD", "top_level.txt"])
def test_a_library_counts_by_its_version(folder: Path, call: str, name: str, lists: str) -> None:
    (folder / "system.py").write_text(CALLS[call])
    install(folder, "1.0", name=name, lists=lists)
    first = find(folder)
    install(folder, "1.0", n=4, name=name, lists=lists)
    assert find(folder) == first != None, "not by its source"  # noqa: E711
    install(folder, "1.1", name=name, lists=lists)
    assert find(folder) not in (None, first)


def test_a_library_that_was_installed_from_a_folder_counts_by_its_files(folder: Path) -> None:
    """`pip install .` after a change leaves the version as it was."""
    (folder / "system.py").write_text(CALLS["at the top"])
    found = []
    for n in (3, 3, 4):
        install(folder, "1.0", n=n)
        (folder / "site-packages" / "own_library-1.0.dist-info" / "direct_url.json").write_text("{}")
        found.append(find(folder))
    assert None not in found
    assert found[0] == found[1] != found[2]


@pytest.mark.parametrize("path", ["own_library/__init__.py", "own_library.py", "own_library/inner.py"])
def test_a_library_without_metadata_counts_by_its_files(folder: Path, path: str) -> None:
    (folder / "system.py").write_text(CALLS["at the top"])
    site = folder / "site-packages"
    (site / "own_library").mkdir()
    if path != "own_library.py":
        (site / "own_library" / "__init__.py").write_text(LIBRARY.format(n=3))
    else:
        (site / "own_library").rmdir()
    found = []
    for n in (3, 3, 4):
        (site / path).write_text(LIBRARY.format(n=n))
        found.append(find(folder))
    assert None not in found
    assert found[0] == found[1] != found[2]


def test_a_library_that_appears(folder: Path) -> None:
    (folder / "system.py").write_text(CALLS["inside"])
    absent = find(folder)
    install(folder, "1.0")
    assert find(folder) not in (None, absent)
    assert "own_library" not in sys.modules, "nothing is imported to find out"


SOURCE = """
#include <Python.h>
static PyObject *cut(PyObject *self, PyObject *text) {{ return PyUnicode_Substring(text, 0, {n}); }}
static PyMethodDef methods[] = {{{{"cut", cut, METH_O, ""}}, {{NULL, NULL, 0, NULL}}}};
static struct PyModuleDef module = {{PyModuleDef_HEAD_INIT, "own_fast", NULL, -1, methods}};
PyMODINIT_FUNC PyInit_own_fast(void) {{ return PyModule_Create(&module); }}
"""


def compile_module(folder: Path, n: int) -> None:
    headers = sysconfig.get_path("include")
    if shutil.which("cc") is None or not Path(headers, "Python.h").exists():
        pytest.skip("there is no compiler here")
    (folder / "fast.c").write_text(SOURCE.format(n=n))
    target = folder / f"own_fast{sysconfig.get_config_var('EXT_SUFFIX')}"
    command = ["cc", "-shared", "-fPIC", f"-I{headers}", "fast.c", "-o"]
    subprocess.run([*command, "new.so"], cwd=folder, check=True)
    (folder / "new.so").replace(target)  # a file that is loaded must not be written over


@pytest.mark.parametrize(
    "text",
    [
        "import own_fast\n\ndef system(example):\n    return own_fast.cut(example['context'])\n",
        "from own_fast import cut\n\ndef system(example):\n    return cut(example['context'])\n",
        "def system(example):\n    from own_fast import cut\n    return cut(example['context'])\n",
    ],
)
def test_a_compiled_module_of_ones_own_counts_by_its_file(folder: Path, text: str) -> None:
    (folder / "system.py").write_text(text)
    compile_module(folder, 3)
    first = find(folder)
    assert first is not None
    compile_module(folder, 4)
    assert find(folder) not in (None, first)


SYSTEM = """
import dataclasses
from typing import Optional

import helper

@dataclasses.dataclass
class Setting:
    width: int = 3

class Mine:
    name = "mine"
    kinds: Optional[list[Setting]] = None

    def __init__(self):
        self.setting, self.types = Setting(), [Optional[Setting], list[Setting]]

    def process(self, example):
        from helper import cut
        return cut(example["context"]) + helper.cut("x")
system = Mine()
"""


def test_where_a_file_lies_and_what_it_is_called_does_not_count(tmp_path: Path) -> None:
    found = set()
    for place, name in (("here", "system"), ("there/deep", "system"), ("here", "renamed")):
        folder = tmp_path / place
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "helper.py").write_text("def cut(text):\n    return text[:3]\n")
        (folder / f"{name}.py").write_text(SYSTEM)
        script = "import sys; from context_bench.store.fingerprints import fingerprint_of; import {0} as module; "
        script += "print(fingerprint_of(module.system))"
        done = subprocess.run(
            [sys.executable, "-c", script.format(name)], cwd=folder, capture_output=True, text=True, check=True
        )
        found.add(done.stdout.strip())
    assert len(found) == 1
    assert "None" not in found


def test_no_value_can_be_read_from_a_fingerprint() -> None:
    class Mine:
        name = "mine"

        def __init__(self) -> None:
            self.api_key = "sk-0123456789abcdef"

        def process(self, example: dict[str, Any]) -> Any:
            return self.api_key

    found = fingerprint_of(Mine())
    assert found is not None
    assert len(found) == 32
    assert set(found) <= set("0123456789abcdef")
    assert "0123456789abcdef" not in found


SLOW = """
import time
import numpy
import pandas
from context_bench.store.fingerprints import fingerprint_of

def clean(frame):
    return frame.dropna()

def system(example):
    return clean(pandas.DataFrame({"a": [numpy.zeros(3).sum()]})).to_json()

started = time.perf_counter()
assert fingerprint_of(system)
print(time.perf_counter() - started)
"""


@pytest.mark.long
@depends_on_time("that a key costs no time is a promise about the clock on the wall")
def test_large_libraries_take_no_time(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    (tmp_path / "slow.py").write_text(SLOW)
    times = []
    for _ in range(3):
        done = subprocess.run([sys.executable, "slow.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
        times.append(float(done.stdout))
    assert min(times) < 0.1
