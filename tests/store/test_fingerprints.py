"""What makes results differ: code, state and names from around; what cannot be told is unknown."""

from __future__ import annotations

import functools
import linecache
import re
import subprocess
import sys
import textwrap
import threading
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from context_bench.evaluators import AnswerQuality
from context_bench.registry import registry
from context_bench.store.fingerprints import fingerprint_of, may_read_gold
from context_bench.systems import (
    BM25,
    AnthropicProxy,
    ClosedBook,
    Command,
    Minify,
    OpenAIProxy,
    Oracle,
    Passthrough,
    RandomDrop,
    Truncate,
    WithReader,
    rename_system,
)
from context_bench.systems.adapt import adapt
from context_bench.tap.scripted import Scripted
from context_bench.tap.system import Tapped

WIDTH = 3


def shorten(text: str) -> str:
    return text[:WIDTH]


def system(example: dict[str, Any]) -> str:
    return shorten(example["context"])


class Slotted:
    __slots__ = ("__depth", "width")
    name = "slotted"

    def __init__(self, width: int, depth: int = 0) -> None:
        self.width, self.__depth = width, depth

    def process(self, example: dict[str, Any]) -> Any:
        return example


@dataclass
class Plain:
    width: int = 3
    words: tuple[str, ...] = ("a",)
    name: str = "plain"

    def process(self, example: dict[str, Any]) -> Any:
        return shorten(example["context"])


class Private:
    name = "private"

    def __init__(self, **state: Any) -> None:
        for name, value in state.items():
            setattr(self, f"_{name}", value)

    def process(self, example: dict[str, Any]) -> Any:
        return example


def made(width: int) -> Any:
    class Local:
        name = "local"

        def process(self, example: dict[str, Any]) -> str:
            return str(example["context"][:width])

    return Local()


def differ(*components: Any) -> None:
    """Each has a fingerprint, the same when asked again, and no two are alike."""
    found = [fingerprint_of(each) for each in components]
    assert None not in found
    assert found == [fingerprint_of(each) for each in components]
    assert len(set(found)) == len(components)


def test_state_counts_wherever_it_is_kept() -> None:
    differ(Slotted(1), Slotted(2), Slotted(1, depth=1))
    differ(Plain(), Plain(width=4), Plain(words=("a", "b")))
    differ(Private(width=1), Private(width=2), Private(height=1))
    differ(made(1), made(2))
    assert fingerprint_of(Plain()) == fingerprint_of(Plain())


def test_values_of_all_kinds_are_told_apart() -> None:
    values: list[Any] = [1, 1.0, True, "1", b"1", None, (1,), [1], {1}, {1: 2}, {"1": 2}, Path("1"), re.compile("1")]
    values += [re.compile("1", re.IGNORECASE), len, str, re, Plain(), shorten, functools.partial(shorten, "x")]
    differ(*[Private(value=value) for value in values])


def test_what_cannot_be_described_is_unknown() -> None:
    for value in (object(), threading.Lock(), open, iter([]), (x for x in "ab"), sys.stdout, [object()]):
        if value is not open:
            assert fingerprint_of(Private(value=value)) is None
    assert fingerprint_of(Private(deep={"list": [object()]})) is None


def test_what_holds_itself_is_described_once() -> None:
    loop = Private()
    loop._self = [loop]  # type: ignore[attr-defined]
    assert fingerprint_of(loop) is not None

    def count(example: dict[str, Any]) -> Any:
        return count(example) if example else 0

    assert fingerprint_of(count) is not None


def test_a_function_with_what_it_names(monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint_of(system)
    assert before is not None
    monkeypatch.setitem(globals(), "WIDTH", 4)
    after = fingerprint_of(system)
    assert after not in (None, before)
    monkeypatch.setitem(globals(), "WIDTH", 3)
    assert fingerprint_of(system) == before
    monkeypatch.setitem(globals(), "shorten", str.upper)
    assert fingerprint_of(system) not in (None, before, after)
    monkeypatch.setitem(globals(), "shorten", object())
    assert fingerprint_of(system) is None


def test_a_class_with_what_its_methods_name(monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint_of(Plain())
    monkeypatch.setitem(globals(), "WIDTH", 4)
    assert fingerprint_of(Plain()) not in (None, before)


def test_a_name_inside_an_inner_function_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    def outer(example: dict[str, Any]) -> Any:
        return sorted(example["context"], key=lambda text: text[WIDTH])

    before = fingerprint_of(outer)
    monkeypatch.setitem(globals(), "WIDTH", 4)
    assert fingerprint_of(outer) not in (None, before)


def test_an_attribute_is_not_taken_for_a_global(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "context", object())

    def reads(example: Any) -> Any:
        return example.context

    assert fingerprint_of(reads) is not None


def test_defaults_closures_partials_and_methods() -> None:
    def fill(width: int) -> Any:
        return lambda example: example["context"][:width]

    def default(example: dict[str, Any], width: int = 3) -> Any:
        return example["context"][:width]

    differ(fill(1), fill(2), default, functools.partial(default, width=1), functools.partial(default, width=2))
    differ(Plain(width=1).process, Plain(width=2).process)
    before = fingerprint_of(default)
    default.__defaults__ = (4,)
    assert fingerprint_of(default) not in (None, before)


def test_a_name_that_is_not_bound_yet() -> None:
    def early(example: dict[str, Any]) -> Any:
        return late(example)

    found = fingerprint_of(early)
    assert found is not None

    def late(example: dict[str, Any]) -> Any:
        return example

    assert fingerprint_of(early) not in (None, found)


def test_a_module_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "own_helper_module.py").write_text("RATIO = 1\n")
    import own_helper_module  # type: ignore[import-not-found]

    module: ModuleType = own_helper_module

    def uses(example: dict[str, Any]) -> Any:
        return example["context"] * module.RATIO

    assert fingerprint_of(uses) is not None
    del sys.modules["own_helper_module"]


def test_code_without_a_source_text_is_unknown() -> None:
    space: dict[str, Any] = {}
    exec("def typed(example): return example", space)
    assert fingerprint_of(space["typed"]) is None


def test_a_cell_of_a_notebook_counts_by_its_source_text_and_the_names_in_it() -> None:
    """A notebook keeps the text of each cell where `inspect` finds it."""

    def run_cell(body: str, width: int) -> list[str | None]:
        text = f"def typed(example):\n    return cut(example)\nclass Typed:\n    def process(self, e): return {body}\n"
        linecache.cache["<cell 1>"] = (len(text), None, text.splitlines(keepends=True), "<cell 1>")
        space: dict[str, Any] = {"cut": functools.partial(shorten, width), "__name__": "own_notebook"}
        exec(compile(text, "<cell 1>", "exec"), space)
        return [fingerprint_of(space["typed"]), fingerprint_of(space["Typed"]())]

    first = run_cell("e", 3)
    assert None not in first
    assert run_cell("e", 3) == first
    edited, other = run_cell("e or 1", 3), run_cell("e", 4)
    assert edited[1] != first[1]
    assert other[0] != first[0]
    assert other[1] == first[1]


SCRIPT = """
import sys
WIDTH = 3
def shorten(text):
    return text[:WIDTH]
class Own:
    name = "own"
    def process(self, example):
        return shorten(example["context"])
from context_bench.store.fingerprints import fingerprint_of
print(fingerprint_of(Own()), fingerprint_of(lambda example: shorten(example["context"])))
"""


def test_a_script_counts_by_what_its_system_uses_and_not_by_how_it_runs_it(tmp_path: Path) -> None:
    def run(text: str) -> list[str]:
        (tmp_path / "script.py").write_text(text)
        done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout.split()

    first = run(SCRIPT)
    assert "None" not in first
    assert run(SCRIPT + "sys.exit(0)\n") == first
    for old, new in (("WIDTH = 3", "WIDTH = 4"), ("text[:WIDTH]", "text[WIDTH:]")):
        assert not set(run(SCRIPT.replace(old, new))) & set(first)


def test_code_that_is_typed_into_the_command_counts_by_its_text() -> None:
    script = textwrap.dedent(
        """
        from context_bench.store.fingerprints import fingerprint_of, may_read_gold
        class Typed:
            name = "typed"
            def process(self, example): return example{body}
        print(fingerprint_of(Typed()))
        """
    )
    printed = [
        subprocess.run([sys.executable, "-c", script.format(body=body)], capture_output=True, text=True, check=True)
        for body in ("", "", "['context']")
    ]
    first, second, other = [done.stdout.strip() for done in printed]
    assert first == second != other
    assert "None" not in (first, other)


# What a component says of itself


def test_a_fingerprint_of_ones_own_is_taken_as_it_is() -> None:
    class Own(Private):
        fingerprint = "own/1"

    assert fingerprint_of(Own(handle=object())) == "own/1"


def test_a_fingerprint_that_is_none_means_unknown() -> None:
    class Unsure(Private):
        fingerprint = None

    assert fingerprint_of(Unsure()) is None
    seen = threading.Lock()
    proxy = OpenAIProxy("http://localhost:1", build_messages=lambda example: [{"role": "user", "content": str(seen)}])
    assert fingerprint_of(proxy) is None


def test_an_attribute_called_like_one_of_ours_hides_nothing() -> None:
    differ(Private(system=Plain(width=1)), Private(system=Plain(width=2)))

    class Wrapper:
        name = "wrapper"

        def __init__(self, loud: bool) -> None:
            self._system, self.parts, self.function = Passthrough(), [Passthrough()], system
            self.loud = loud

        def process(self, example: dict[str, Any]) -> Any:
            return example

    differ(Wrapper(True), Wrapper(False), Passthrough())


def test_a_version_is_for_evaluators_that_declare_it_themselves() -> None:
    class Judge:
        name = "judge"
        version = 1

        def __init__(self, scale: int = 5) -> None:
            self.scale, self._handle = scale, object()

        def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
            return {}

    first = Judge()
    differ(first, Judge(scale=6))
    Judge.version = 2
    assert fingerprint_of(Judge()) != fingerprint_of(AnswerQuality())

    class Stricter(AnswerQuality):
        def score(self, original: dict[str, Any], processed: dict[str, Any]) -> Any:
            return {"f1": 0.0}

    class Milder(AnswerQuality):
        def score(self, original: dict[str, Any], processed: dict[str, Any]) -> Any:
            return {"f1": 1.0}

    differ(AnswerQuality(), Stricter(), Milder())


def test_a_system_is_not_known_by_its_version_alone() -> None:
    def build(body: str) -> Any:
        class One:
            name = "one"
            version = "1.0"

            def process(self, example: dict[str, Any]) -> Any:
                return body

        return One()

    differ(build("a"), build("b"))


def test_a_changed_proxy_is_not_the_proxy() -> None:
    class Polite(OpenAIProxy):
        def request_body(self, example: dict[str, Any]) -> dict[str, Any]:
            return {**super().request_body(example), "please": True}

    class Tuned(OpenAIProxy):
        def __init__(self, style: str) -> None:
            super().__init__("http://localhost:1")
            self.style = style

    class Loud(Passthrough):
        def process(self, example: dict[str, Any]) -> Any:
            return {"context": example["context"].upper()}

    plain = OpenAIProxy("http://localhost:1")
    differ(plain, Polite("http://localhost:1"), Polite("http://localhost:2"), Tuned("short"), Tuned("long"))
    differ(Passthrough(), Loud())


def test_wrappers_of_ours_stand_for_what_is_in_them() -> None:
    reader = OpenAIProxy("http://localhost:1")
    differ(
        WithReader(Passthrough(), reader),
        WithReader(Truncate(ratio=0.5), reader),
        WithReader(Truncate(ratio=0.4), reader),
        WithReader(Passthrough(), OpenAIProxy("http://localhost:1", model="m")),
    )
    assert fingerprint_of(rename_system(BM25(ratio=0.5), "other")) == fingerprint_of(BM25(ratio=0.5))
    assert fingerprint_of(adapt(system)) == fingerprint_of(system)
    assert fingerprint_of(rename_system(adapt(system), "other")) == fingerprint_of(system)
    assert fingerprint_of(WithReader(lambda example: str(object), OpenAIProxy("http://localhost:1"))) is not None
    handle = object()
    assert fingerprint_of(WithReader(lambda example: str(handle), reader)) is None


def test_what_ships_says_whether_it_reads_the_gold() -> None:
    url = "http://localhost:1"
    blind: list[Any] = [Passthrough(), ClosedBook(), Truncate(), RandomDrop(), Minify(), BM25()]
    blind += [
        OpenAIProxy(url),
        AnthropicProxy(url),
        rename_system(OpenAIProxy(url), "other"),
        Tapped(OpenAIProxy(url), Scripted.from_text("echo")),
    ]
    blind += [WithReader(BM25(), OpenAIProxy(url)), WithReader(BM25(), AnthropicProxy(url))]
    reading: list[Any] = [
        Oracle(),
        Command("cat"),
        adapt(system),
        rename_system(Oracle(), "other"),
        WithReader(Oracle(), OpenAIProxy(url)),
    ]
    assert [each.name for each in blind if may_read_gold(each)] == []
    assert [each.name for each in reading if not may_read_gold(each)] == []


def test_every_evaluator_that_ships_can_be_told() -> None:
    for name in registry.list("evaluator"):
        kind = registry.get("evaluator", name)
        evaluator = kind("http://localhost:1", "model") if name == "llm-judge" else kind()
        assert fingerprint_of(evaluator) is not None, name


def test_the_same_in_another_process(tmp_path: Path) -> None:
    """Sets, hashes and addresses differ between processes; fingerprints do not."""
    (tmp_path / "own.py").write_text(
        textwrap.dedent(
            """
            STOP = {"the", "a", "an", "of"}
            class Own:
                name = "own"
                def __init__(self): self.words = frozenset("abcdef"); self.inner = {"a": [1, STOP]}
                def process(self, example): return [word for word in example["context"].split() if word not in STOP]
            from context_bench.store.fingerprints import fingerprint_of, may_read_gold
            print(fingerprint_of(Own()))
            """
        )
    )
    found = {
        subprocess.run([sys.executable, "own.py"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        for _ in range(3)
    }
    assert len(found) == 1
    assert "None" not in found.pop()
