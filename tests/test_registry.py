"""The registry: built-ins, what a user registers, and plugins found by entry points."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from context_bench.errors import UnknownName, UsageError
from context_bench.registry import (
    KINDS,
    Registry,
    get_metric,
    import_object,
    load_dataset,
    register_dataset,
    register_metric,
    registry,
)


@pytest.mark.parametrize("kind", KINDS)
def test_register_get_and_list_for_every_kind(kind: str) -> None:
    own, thing = Registry(), object()
    own.register(kind, "my-thing", thing)
    assert own.get(kind, "my-thing") is thing
    assert "my-thing" in own.list(kind)
    assert (kind, "my-thing") in own


@pytest.mark.parametrize("kind", KINDS)
def test_every_built_in_can_be_imported(kind: str) -> None:
    names = registry.list(kind)
    assert names == sorted(names)
    assert names
    assert all(callable(registry.get(kind, name)) for name in names)


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (
            "system",
            {"passthrough", "truncate", "random-drop", "minify", "bm25", "closed-book", "oracle", "openai-proxy"},
        ),
        ("evaluator", {"answer-quality", "context-recall"}),
        (
            "metric",
            {
                "mean-score",
                "pass-rate",
                "compression-ratio",
                "cost-of-pass",
                "latency",
                "per-dataset-breakdown",
                "pareto-rank",
            },
        ),
        ("reporter", {"table", "json", "csv", "html"}),
        ("dataset", {"needle", "kv"}),
    ],
)
def test_what_ships(kind: str, names: set[str]) -> None:
    assert names <= set(registry.list(kind))


@pytest.mark.parametrize("kind", ["system", "evaluator", "metric", "reporter"])
def test_a_component_is_registered_under_its_own_name(kind: str) -> None:
    for name in registry.list(kind):
        component = registry.get(kind, name)
        declared = vars(component).get("name", name)  # some are named when they are made
        assert declared == name or not isinstance(declared, str)


def test_hyphen_and_underscore_are_alike() -> None:
    own = Registry()
    own.register("dataset", "my_own-data", 1)
    assert own.get("dataset", "my-own_data") == 1
    assert ("dataset", "my_own_data") in own
    assert own.get("system", "random_drop") is own.get("system", "random-drop")


def test_a_later_registration_replaces_an_earlier_and_a_built_in_one() -> None:
    own = Registry()
    own.register("metric", "latency", 1)
    own.register("metric", "latency", 2)
    assert own.get("metric", "latency") == 2
    assert own.list("metric").count("latency") == 1
    assert Registry().get("metric", "latency").__name__ == "Latency"


def test_an_unknown_name_is_a_key_error_with_the_nearest_names() -> None:
    with pytest.raises(KeyError) as caught:
        registry.get("system", "trunkate")
    assert isinstance(caught.value, UnknownName)
    assert str(caught.value) == "unknown system 'trunkate': did you mean truncate?"


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        ("system", "naive", "it is a memory system, which `context-bench memory --system naive` runs"),
        ("memory_system", "minify", "it is a system, which `context-bench --system minify` runs"),
        ("memory_dataset", "needle", "it is a dataset, which `context-bench --dataset needle` runs"),
    ],
)
def test_a_name_of_the_other_kind_is_told_where_it_belongs(kind: str, name: str, said: str) -> None:
    with pytest.raises(KeyError) as caught:
        registry.get(kind, name)
    assert str(caught.value) == f"unknown {kind.replace('_', ' ')} {name!r}: {said}"
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_names_that_a_user_registered_are_suggested_too() -> None:
    own = Registry()
    own.register("dataset", "wombat-questions", list)
    with pytest.raises(UnknownName, match=r"did you mean wombat-questions"):
        own.get("dataset", "wombat-question")


@pytest.mark.parametrize("call", [lambda: registry.get("sytem", "x"), lambda: registry.register("x", "y", 1)])
def test_an_unknown_kind_lists_the_kinds(call: object) -> None:
    with pytest.raises(UsageError, match="choose from dataset, system, evaluator, metric, reporter"):
        call()  # type: ignore[operator]
    with pytest.raises(UsageError):
        registry.list("nothing")


def test_load_dataset_forwards_keywords_to_the_loader() -> None:
    def loader(n: int = 1, prefix: str = "e") -> list[dict[str, str]]:
        return [{"id": f"{prefix}{number}", "context": "c"} for number in range(n)]

    register_dataset("own-data", loader)
    assert [example["id"] for example in load_dataset("own_data", n=2, prefix="x")] == ["x0", "x1"]
    assert len(load_dataset("own-data")) == 1
    assert "own-data" in registry.list("dataset")


def test_a_dataset_that_is_a_stream_can_be_read_again() -> None:
    made: list[int] = []

    def loader(n: int = 2) -> Iterator[dict[str, object]]:
        made.append(n)
        yield from ({"id": number, "context": "c"} for number in range(n))

    register_dataset("stream-data", loader)
    loaded = load_dataset("stream-data", n=3)
    assert [[example["id"] for example in loaded] for _ in range(3)] == [[0, 1, 2]] * 3
    assert made == [3, 3, 3]  # none before it was asked for, and one for each pass
    needles = load_dataset("needle", length=400, n=2)
    assert list(needles) == list(needles) != []


def test_load_dataset_with_a_parameter_that_its_loader_does_not_take() -> None:
    with pytest.raises(
        UsageError, match=r"'needle': unknown parameter 'lenght'; did you mean length\? it takes length"
    ):
        load_dataset("needle", lenght=400)


def test_load_dataset_of_an_unknown_name() -> None:
    with pytest.raises(KeyError, match="needle"):
        load_dataset("needl")


def test_register_and_get_a_metric() -> None:
    class Best:
        name = "best"

        def compute(self, rows: list[object]) -> dict[str, float]:
            return {"best": 1.0}

    register_metric("best", Best)
    assert get_metric("best") is Best
    assert get_metric("mean_score")(score_field="f1").compute([]) == {"mean_score": 0.0}


def test_objects_are_imported_by_path() -> None:
    assert import_object("json:dumps").__name__ == "dumps"
    assert import_object("pathlib:Path.cwd")() == Path.cwd()


# --- entry points: a real distribution on the path, looked up by a real process


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """An installed package with plugins of two kinds, one of which is broken."""
    (tmp_path / "acme_plugin.py").write_text(
        textwrap.dedent(
            """
            def load(n=1):
                return [{"id": number, "context": "from acme"} for number in range(n)]

            class Shrink:
                name = "acme-shrink"
                def process(self, example):
                    return {"context": example["context"][:4]}
            """
        )
    )
    (tmp_path / "acme_broken.py").write_text("import a_module_that_does_not_exist\n")
    info = tmp_path / "acme_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        textwrap.dedent(
            """
            [context_bench.datasets]
            acme_data = acme_plugin:load

            [context_bench.systems]
            acme-shrink = acme_plugin:Shrink
            acme-broken = acme_broken:Thing
            truncate = acme_plugin:Shrink
            """
        )
    )
    return tmp_path


def _run(plugin: Path, code: str) -> str:
    environment = {"PYTHONPATH": f"{plugin}:{':'.join(filter(None, sys.path))}"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, cwd=plugin, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_plugins_are_found_and_listed(plugin: Path) -> None:
    code = """
from context_bench.registry import load_dataset, registry
assert "acme-data" in registry.list("dataset") and "acme-shrink" in registry.list("system")
print([example["id"] for example in load_dataset("acme-data", n=2)], registry.get("system", "acme_shrink").__name__)
"""
    assert _run(plugin, code) == "[0, 1] Shrink"


def test_a_plugin_takes_no_built_in_name_away(plugin: Path) -> None:
    code = "from context_bench.registry import registry; print(registry.get('system', 'truncate').__module__)"
    assert _run(plugin, code) == "context_bench.systems.reference"


def test_a_broken_plugin_hurts_only_those_who_ask_for_it(plugin: Path) -> None:
    code = """
from context_bench.errors import UsageError
from context_bench.registry import registry
assert "acme-broken" in registry.list("system")
try:
    registry.get("system", "acme-broken")
except UsageError as error:
    print(error)
"""
    said = _run(plugin, code)
    assert "acme_broken:Thing" in said
    assert "a_module_that_does_not_exist" in said


def test_a_plugin_works_from_the_command_line(plugin: Path) -> None:
    code = """
from context_bench.cli import main
import sys
sys.exit(main(["--system", "acme-shrink", "--dataset", "acme-data:n=3", "--output", "json", "--quiet", "--no-store"]))
"""
    document = json.loads(_run(plugin, code))
    assert [row["response"] for row in document["rows"]] == ["from"] * 3
    assert document["rows"][0]["dataset"] == "acme-data:n=3"
