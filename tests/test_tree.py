"""Import cycles, and one home for the forms of the APIs."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

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
