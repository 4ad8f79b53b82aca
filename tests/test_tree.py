"""Import cycles, and one home each: forms of the APIs, optional members, children, keys of the summary."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import context_bench
from context_bench.memory.members import _OPTIONAL
from context_bench.numbers import COUNTS, MACRO_SCORE, MEAN_SCORE
from source_tree import find_cycles, find_imports, read_package, read_sources


def _shorten(module: str) -> str:
    return module.removeprefix("context_bench.")


# --- cycles


def test_no_module_imports_itself_by_way_of_others() -> None:
    assert find_cycles(find_imports(read_package())) == []


CYCLIC_TREES: dict[str, dict[str, str]] = {
    "at the top": {"a.py": "import box.b", "b.py": "import box.a"},
    "by name": {"a.py": "from box.b import value", "b.py": "from box.a import other"},
    "inside a function": {"a.py": "from box.b import value", "b.py": "def f():\n    from box.a import other"},
    "inside a coroutine": {"a.py": "from box import b", "b.py": "async def f():\n    from box import a"},
    "inside a method": {"a.py": "import box.b", "b.py": "class C:\n    def f(self):\n        import box.a as x"},
    "inside a try": {"a.py": "import box.b", "b.py": "try:\n    import box.a\nexcept ImportError:\n    pass"},
    "where types are not checked": {
        "a.py": "import box.b",
        "b.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    pass\nelse:\n    import box.a",
    },
    "with the package itself": {"__init__.py": "from box.a import value", "a.py": "from box import value"},
    "of three": {"a.py": "import box.b", "b.py": "import box.c", "c.py": "import box.a"},
    "across packages": {"a.py": "import box.inner.b", "inner/__init__.py": "", "inner/b.py": "import box.a"},
}


def _write_tree(folder: Path, files: dict[str, str]) -> Path:
    for name, text in {"__init__.py": "", **files}.items():
        path = folder / "box" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder / "box"


@pytest.mark.parametrize("kind", CYCLIC_TREES)
def test_a_cycle_is_found(kind: str, tmp_path: Path) -> None:
    files = CYCLIC_TREES[kind]
    (cycle,) = find_cycles(find_imports(read_sources(_write_tree(tmp_path, files))))
    names = {
        f"box/{name}".removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for name, text in files.items()
        if text
    }
    assert set(cycle) == names


@pytest.mark.parametrize(
    "files",
    [
        {"a.py": "import box.b", "b.py": "import box.c", "c.py": ""},
        {"a.py": "import box.b", "b.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import box.a"},
        {"a.py": "import box.c", "b.py": "import box.c", "c.py": ""},
        {"__init__.py": "from box.a import value", "a.py": "import box.b", "b.py": ""},
        {"a.py": "import b", "b.py": "import a"},
    ],
    ids=["a chain", "types alone", "two that share one", "a package that shows its parts", "another package's modules"],
)
def test_no_cycle_is_found_where_none_is(files: dict[str, str], tmp_path: Path) -> None:
    assert find_cycles(find_imports(read_sources(_write_tree(tmp_path, files)))) == []


# --- one home for the forms of the APIs


STREAM_WORDS = {
    *("delta", "text_delta", "input_json_delta", "content_block_delta", "content_block_start", "message_start"),
    *("message_delta", "message_stop", "chat.completion", "chat.completion.chunk"),
}
"""Fields and event types that nothing but a reply of an API has."""

WITNESSES = ("context_bench.wire.", "context_bench.conformance.")
"""`wire` is the home of the forms; `conformance` has its own on purpose: it is the witness."""


def test_replies_of_apis_are_read_in_one_place() -> None:
    elsewhere = [
        f"{_shorten(module)}, line {node.lineno}: {node.value!r}"
        for module, source in read_package().items()
        if not module.startswith(WITNESSES)
        for node in source.nodes
        if isinstance(node, ast.Constant) and node.value in STREAM_WORDS
    ]
    assert elsewhere == []


# --- optional members of parts

SOURCES = Path(context_bench.__file__).parent
MODULES = {"os", "sys", "signal", "select", "builtins", "resource", "module", "config"}
"""Names of things that are no part: modules of Python, and what was loaded from elsewhere."""

OTHERS = {
    "process": "a system as it is adapted",
    "aclose": "an asynchronous generator",
    "add_all": "a tally of ours",
    "advice": "an exception of ours",
    "co_exceptiontable": "a code object",
    "columns": "a data frame",
    "dtype": "an array",
    "errno": "an exception",
    "fill_in_tap": "a proxy of ours",
    "factory": "a field of attrs",
    "nbytes": "an array",
    "reconfigure": "a stream",
    "response": "an exception of a library",
    "result": "an exception of ours",
    "status_code": "a reply of a library",
    "tapped": "an exception of ours",
    "to_dict": "a data frame",
    "to_dicts": "a data frame",
    "tobytes": "an array",
    "tolist": "an array",
    "wrong_form": "an exception of ours",
}
"""What may be asked for by name elsewhere, since it is no member of a part."""


PLACES = ("traits.py", "memory/members.py")
"""The one place that asks, for parts and for memory systems."""


def _asks() -> Iterator[tuple[str, int, str, str]]:
    """File, line, object and name of every look-up by a literal name."""
    for source in read_package().values():
        asking = {"getattr", "hasattr", "_read_member", *(["partial"] if source.file == "traits.py" else [])}
        for node in source.nodes:
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or len(node.args) < 2:
                continue
            subject, name = node.args[:2]
            if node.func.id in asking and isinstance(name, ast.Constant):
                yield source.file, node.lineno, ast.unparse(subject), str(name.value)


def test_parts_are_asked_for_optional_members_in_one_place() -> None:
    wrong = [
        f"{place}:{line} asks {subject} for {name!r}: `traits.py` is the place for that"
        for place, line, subject, name in _asks()
        if place not in PLACES
        and not place.startswith("sandbox/inside/")
        and not name.startswith("_")
        and subject not in MODULES
        and subject != "options"
        and name not in OTHERS
    ]
    assert wrong == []


def test_every_member_that_is_asked_for_is_documented() -> None:
    text = (SOURCES / "types.py").read_text(encoding="utf-8")
    text += (SOURCES / "tap" / "answering.py").read_text(encoding="utf-8")
    documented = set(re.findall(r"^ {8}(\w+)(?:\(.*?\))?: ", text, flags=re.MULTILINE))
    tree = ast.parse((SOURCES / "traits.py").read_text(encoding="utf-8"))
    constants = {
        node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    asked = {name for place, _, _, name in _asks() if place in PLACES} - {"ingest", "name"}
    asked |= {*_OPTIONAL, "user"}
    asked |= constants & {"prepare", "finish", "start", "notes", "unmeasured", "intervals", "render_parts"}
    assert asked - {"score"} <= documented
    assert documented - asked == {"__len__"}


# --- children


def test_children_are_started_and_killed_in_one_place() -> None:
    """`subprocess.run`, which waits for the end and kills by itself, may be used anywhere."""
    starts = {"Popen", "killpg", "create_subprocess_exec", "create_subprocess_shell", "fork", "posix_spawn", "system"}
    found = [
        f"{source.file}:{node.lineno} {node.func.attr}"
        for source in read_package().values()
        if source.path.parent.name != "processes" and source.file != "cli/process.py"
        for node in source.nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in starts
    ]
    assert found == []


# --- keys of the summary


def test_the_text_of_a_shared_key_stands_in_numbers_alone() -> None:
    keys = {MEAN_SCORE, MACRO_SCORE, *COUNTS}
    found = {
        (part, source.file)
        for source in read_package().values()
        for node in source.nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for part in re.split("[:@]", node.value)
        if part in keys
    }
    assert found == {(key, "numbers.py") for key in keys}
