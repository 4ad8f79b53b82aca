"""Which systems are one system with a knob."""

from __future__ import annotations

import pytest

from context_bench.compare.sweeps import find_sweeps, join_settings, name_briefly, name_setting, write_briefly


def found(*names: str) -> list[tuple[str, str, list[str]]]:
    return [(sweep.name, sweep.knob, list(sweep.settings.values())) for sweep in find_sweeps(names)]


def test_the_settings_of_a_sweep_belong_together() -> None:
    names = ("passthrough", "bm25:ratio=0.1", "bm25:ratio=0.3", "truncate:ratio=0.5", "bm25:ratio=0.5")
    assert found(*names) == [("bm25", "ratio", ["0.1", "0.3", "0.5"])]


def test_a_started_proxy() -> None:
    names = [name_setting("proxy", {"level": level}) for level in ("low", "mid")]
    assert names == ["proxy[level=low]", "proxy[level=mid]"]
    assert found(*names) == [("proxy", "level", ["low", "mid"])]


def test_parameters_that_all_share_stay_in_the_name() -> None:
    names = ("a.py:Mine:k=1,ratio=0.1", "a.py:Mine:k=1,ratio=0.3", "a.py:Mine:k=2,ratio=0.1", "a.py:Mine:k=2,ratio=0.3")
    assert [name for name, _, _ in found(*names)] == ["a.py:Mine:ratio=0.1", "a.py:Mine:ratio=0.3"]
    more = (*names, "a.py:Mine:k=1,ratio=0.5", "a.py:Mine:k=2,ratio=0.5")
    assert found(*more) == [
        ("a.py:Mine:k=1", "ratio", ["0.1", "0.3", "0.5"]),
        ("a.py:Mine:k=2", "ratio", ["0.1", "0.3", "0.5"]),
    ]


@pytest.mark.parametrize(
    "names",
    [
        ("passthrough", "direct"),
        ("bm25:ratio=0.1", "truncate:ratio=0.2"),
        ("random-drop:seed=1", "random-drop:seed=2"),
        ("localhost:8000", "localhost:8001"),
        ("bm25:ratio=0.1",),
        ("mine:a=1,b=1", "mine:a=2,b=2"),
        ("command:./x --a=1", "command:./x --a=2"),
    ],
)
def test_names_that_are_no_sweep(names: tuple[str, ...]) -> None:
    assert found(*names) == []


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["bm25:ratio=0.1", "x", "bm25:ratio=0.3"], ["bm25:ratio=0.1|0.3", "x"]),
        (["p[level=low]", "p[level=mid]"], ["p[level=low|mid]"]),
        (["a.py:Mine:k=1,ratio=0.1", "a.py:Mine:k=1,ratio=0.3"], ["a.py:Mine:k=1,ratio=0.1|0.3"]),
        (["m:a=1,aa=1", "m:a=1,aa=2"], ["m:a=1,aa=1|2"]),
        ([f"m:k={k}" for k in range(9)], ["m:k=0|…|8 (9 settings)"]),
        (["passthrough", "bm25:ratio=0.1"], ["passthrough", "bm25:ratio=0.1"]),
    ],
)
def test_a_sweep_has_one_name_with_all_its_settings(names: list[str], told: list[str]) -> None:
    assert join_settings(names) == told


def test_settings_are_told_in_the_order_of_their_numbers() -> None:
    assert join_settings([f"bm25:ratio={ratio}" for ratio in (0.9, 0.1, 0.5)]) == ["bm25:ratio=0.1|0.5|0.9"]


def test_names_in_a_sentence_are_short_also_those_of_sweeps() -> None:
    names = [f"bm25:ratio={tenth / 10}" for tenth in range(1, 8)] + ["drop[level=a]", "needle:length=4000,n=60"]
    text = "Worse: bm25:ratio=0.1|…|0.7 (7 settings), bm25:ratio=0.3, and drop[level=a] on needle:length=4000,n=60."
    assert write_briefly(text, names) == "Worse: bm25 10%|…|70% (7 settings), bm25 30%, and drop a on needle 4k."
    assert write_briefly(text, ["bm25"]) == text


def test_a_short_name_drops_the_file_of_a_users_object_where_no_other_has_that_name() -> None:
    names = ["mine.py:keep:ratio=0.1", "mine.py:Ours", "a.py:twin", "b.py:twin", "lib/c.py:cut:ratio=0.5"]
    assert list(name_briefly(names).values()) == ["keep 10%", "Ours", "a.py:twin", "b.py:twin", "cut 50%"]
    told = write_briefly(
        "Worse: mine.py:keep:ratio=0.1|0.3 and mine.py:Ours; mine.py:keep is below lib/c.py:cut.", names
    )
    assert told == "Worse: keep 10%|30% and Ours; keep is below cut."
