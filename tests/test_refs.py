"""References: the grammar that names a component in one line, and the sentences for what is wrong with one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from banks import each_case
from context_bench.errors import UnknownName, UsageError
from context_bench.refs import Ref, call_with, import_code, parse, resolve
from context_bench.systems import Truncate


def _one(kind: str, text: str) -> Ref:
    (ref,) = parse(kind, text)
    return ref


@each_case(
    ("kind", "text", "target", "argument", "parameters"),
    [
        ("system", "truncate", "truncate", None, {}),
        ("system", "truncate:", "truncate", None, {}),
        ("system", "random_drop", "random_drop", None, {}),
        ("system", "bm25:ratio=0.3", "bm25", None, {"ratio": 0.3}),
        ("system", "truncate:budget=100,keep=tail", "truncate", None, {"budget": 100, "keep": "tail"}),
        ("dataset", "needle:length=8000,n=50", "needle", None, {"length": 8000, "n": 50}),
        ("dataset", "needle:anatomy", "needle", "anatomy", {}),
        ("dataset", "needle:anatomy,n=5", "needle", "anatomy", {"n": 5}),
        (
            "system",
            "openai-proxy:base_url=http://localhost:80/v1",
            "openai-proxy",
            None,
            {"base_url": "http://localhost:80/v1"},
        ),
        ("system", "json:dumps", "json:dumps", None, {}),
        ("system", "os.path:join:x=1", "os.path:join", None, {"x": 1}),
        ("system", "some/file.py:thing", "some/file.py:thing", None, {}),
        ("system", "file.py:thing:key=value,k=2", "file.py:thing", None, {"key": "value", "k": 2}),
    ],
)
def test_the_grammar(kind: str, text: str, target: str, argument: str | None, parameters: dict[str, Any]) -> None:
    assert _one(kind, text) == Ref(text, target, argument, parameters)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("-5", -5),
        ("0.5", 0.5),
        ("1e3", 1000.0),
        ("true", True),
        ("False", False),
        ("none", None),
        ("head", "head"),
        ("", ""),
        ("a=b", "a=b"),
        ("007x", "007x"),
    ],
)
def test_values_have_the_type_they_look_like(text: str, value: Any) -> None:
    found = _one("system", f"truncate:key={text}").parameters["key"]
    assert (found, type(found)) == (value, type(value))


def test_a_sweep_stands_for_several_references_in_order() -> None:
    refs = parse("dataset", "needle:length=8000|16000,n=50")
    assert [ref.parameters for ref in refs] == [{"length": 8000, "n": 50}, {"length": 16000, "n": 50}]
    assert [ref.text for ref in refs] == ["needle:length=8000,n=50", "needle:length=16000,n=50"]


def test_two_sweeps_give_every_combination() -> None:
    refs = parse("system", "truncate:ratio=0.1|0.2,keep=head|tail")
    assert [tuple(ref.parameters.values()) for ref in refs] == [
        (0.1, "head"),
        (0.1, "tail"),
        (0.2, "head"),
        (0.2, "tail"),
    ]
    assert len({ref.text for ref in refs}) == 4


def test_the_names_of_a_sweep_keep_the_numbers_as_typed() -> None:
    assert [ref.text for ref in parse("system", "bm25:ratio=0.50|.3")] == ["bm25:ratio=0.50", "bm25:ratio=.3"]


def test_a_positional_argument_stays_with_every_value_of_a_sweep() -> None:
    refs = parse("dataset", "needle:anatomy,n=1|2")
    assert [(ref.text, ref.argument) for ref in refs] == [
        ("needle:anatomy,n=1", "anatomy"),
        ("needle:anatomy,n=2", "anatomy"),
    ]


def test_a_swept_file_keeps_its_path_in_the_name() -> None:
    assert [ref.text for ref in parse("system", "a/f.py:g:k=1|2")] == ["a/f.py:g:k=1", "a/f.py:g:k=2"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("truncat:ratio=0.5", "unknown system 'truncat': did you mean truncate or truncate-tool-results?"),
        ("truncate:ratio=0.5,ratio=0.6", "'truncate:ratio=0.5,ratio=0.6' gives 'ratio' twice"),
        ("truncate:ratio=0.5,tail", "'truncate:ratio=0.5,tail': 'tail' is not key=value"),
        ("truncate:a,b", "'truncate:a,b': 'b' is not key=value"),
        ("file.py", "'file.py' names no object: write file.py:OBJECT"),
        ("json:", "'json:' names no object: write json:OBJECT"),
    ],
)
def test_what_is_wrong_with_a_reference(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse("system", text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "text", ["", ":", "no-such-thing", "no_such_module:thing", "..:x", "json..decoder:c", "\x00:x", "é:x"]
)
def test_nonsense_is_an_unknown_name(text: str) -> None:
    with pytest.raises(UnknownName):
        parse("system", text)


def test_a_registered_name_wins_over_a_module_of_that_name() -> None:
    assert _one("reporter", "json:dumps").target == "json"


# --- what a reference points at


def test_resolve_finds_registered_imported_and_local_objects(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("class Mine:\n    name = 'mine'\n    class Inner: pass\n")
    assert resolve("system", _one("system", "truncate:ratio=0.5")) is Truncate
    assert resolve("system", _one("system", "json:dumps")).__name__ == "dumps"
    assert resolve("system", _one("system", "pathlib:Path.cwd")).__name__ == "cwd"
    assert resolve("system", _one("system", f"{file}:Mine")).name == "mine"
    assert resolve("system", _one("system", f"{file}:Mine.Inner")).__name__ == "Inner"


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("missing.py", None, "missing.py: no such file"),
        ("wrong.py", "x = = 1\n", "SyntaxError"),
        ("raises.py", "1 / 0\n", "ZeroDivisionError: division by zero"),
        ("imports.py", "import nowhere_at_all\n", "No module named 'nowhere_at_all'"),
        ("empty.py", "", "has no 'thing'"),
    ],
)
def test_a_file_that_cannot_be_used(tmp_path: Path, name: str, code: str | None, message: str) -> None:
    if code is not None:
        (tmp_path / name).write_text(code)
    with pytest.raises(UsageError) as caught:
        resolve("system", _one("system", f"{tmp_path / name}:thing"))
    assert message in str(caught.value)
    assert name in str(caught.value)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("x = = 1\n", "SyntaxError"),
        ("1 / 0\n", "division by zero"),
        ("import nowhere_at_all\n", "nowhere_at_all"),
        ("None.x\n", "'NoneType' object has no attribute 'x'"),
        ("", "has no 'thing'"),
    ],
)
def test_a_module_that_cannot_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, message: str) -> None:
    (tmp_path / "broken_module_of_a_user.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "broken_module_of_a_user", raising=False)
    with pytest.raises(UsageError) as caught:
        resolve("system", _one("system", "broken_module_of_a_user:thing"))
    assert message in str(caught.value)
    monkeypatch.delitem(sys.modules, "broken_module_of_a_user", raising=False)
    if code:
        with pytest.raises(UsageError):
            import_code("broken_module_of_a_user")


def test_a_file_is_run_once_and_two_of_one_name_are_two(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same.py").write_text(f"where = {folder!r}\nthings = []\n")
    first, second = (import_code(str(tmp_path / folder / "same.py")) for folder in ("a", "b"))
    assert (first.where, second.where) == ("a", "b")
    assert import_code(str(tmp_path / "a" / ".." / "a" / "same.py")).things is first.things


def test_a_file_that_failed_is_run_again_once_it_is_mended(tmp_path: Path) -> None:
    file = tmp_path / "mended.py"
    file.write_text("raise RuntimeError('not yet')\n")
    with pytest.raises(UsageError, match="RuntimeError: not yet"):
        import_code(str(file))
    file.write_text("ready = True  # mended\n")
    assert import_code(str(file)).ready


def test_a_file_may_hold_dataclasses(tmp_path: Path) -> None:
    file = tmp_path / "data.py"
    file.write_text(
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        "@dataclass\nclass D:\n    x: int = 1\n    name: str = 'd'\n"
    )
    assert call_with(import_code(str(file)).D, _one("system", f"{file}:D:x=3")).x == 3


# --- calling with parameters


def test_parameters_reach_the_factory() -> None:
    system = call_with(Truncate, _one("system", "truncate:budget=7,keep=tail"))
    assert (system.budget.budget, system.keep) == (7, "tail")


def test_an_unknown_parameter_lists_the_known() -> None:
    with pytest.raises(UsageError) as caught:
        call_with(Truncate, _one("system", "truncate:ration=0.5"))
    said = "'truncate:ration=0.5': unknown parameter 'ration'; did you mean ratio? it takes ratio, budget, keep"
    assert str(caught.value) == said


def test_a_parameter_without_a_value_is_suggested_too() -> None:
    with pytest.raises(UsageError) as caught:
        call_with(Truncate, _one("system", "truncate:rato"))
    assert str(caught.value) == "'truncate:rato': 'rato' is not key=value; did you mean ratio?"


def test_an_unknown_parameter_of_something_that_takes_none() -> None:
    with pytest.raises(UsageError, match="unknown parameter 'x'; it takes none"):
        call_with(lambda: None, _one("system", "truncate:x=1"))


def test_wrong_values_are_the_users_mistake() -> None:
    with pytest.raises(UsageError, match=r"from 0 to 1 \(got 2\)"):
        call_with(Truncate, _one("system", "truncate:ratio=2"))
    with pytest.raises(UsageError, match=r"from 0 to 1 \(got 'abc'\)"):
        call_with(Truncate, _one("system", "truncate:ratio=abc"))
    with pytest.raises(UsageError, match="'truncate:x=1': no such thing"):
        call_with(_refuses, _one("system", "truncate:x=1"))


def _refuses(x: int) -> None:
    raise ValueError("no such thing")


def test_a_positional_argument_needs_somewhere_to_go() -> None:
    ref = _one("dataset", "needle:anatomy")
    assert call_with(lambda config: config, ref, argument_name="config") == "anatomy"
    with pytest.raises(UsageError, match="'anatomy' is not key=value"):
        call_with(lambda config: config, ref)
    with pytest.raises(UsageError, match="'anatomy' is not key=value"):
        call_with(lambda n: n, ref, argument_name="config")


def test_a_factory_that_takes_anything_is_given_everything() -> None:
    assert call_with(lambda **given: given, _one("system", "truncate:a=1,b=x")) == {"a": 1, "b": "x"}
