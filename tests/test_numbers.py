"""The declarations of the summary numbers, and what derives from them."""

from __future__ import annotations

import importlib.util
import math
from types import ModuleType

import pytest

from banks import each_case
from context_bench.numbers import (
    FORMATS,
    JUDGE_SCORE,
    MACRO_SCORE,
    MEAN_SCORE,
    NEEDS,
    NUMBERS,
    choose_score_key,
    find_score_key,
    get_number,
    list_keys,
    list_numbers,
)
from context_bench.registry import registry
from pages import ROOT


def _load_tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_numbers_page", ROOT / "tools" / "make_numbers_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_docs_page_is_generated_from_the_declarations() -> None:
    page = (ROOT / "docs" / "numbers.md").read_text(encoding="utf-8")
    assert page == _load_tool().render_page(), "python tools/make_numbers_page.py > docs/numbers.md"


@each_case("key", NUMBERS)
def test_a_declaration_is_complete(key: str) -> None:
    number = NUMBERS[key]
    assert number.title
    assert number.unit in FORMATS
    assert number.meaning.endswith((".", ")"))
    assert number.show(0.5)
    assert number.low < number.high
    assert not number.metric or number.metric in registry.list("metric")
    for other in (number.replaced_by, number.beside):
        assert not other or other in NUMBERS


def test_no_two_columns_of_a_table_share_a_title() -> None:
    for table in {number.table for number in NUMBERS.values()} - {""}:
        titles = [number.title for number in list_numbers(table) if not number.replaced_by]
        assert len(titles) == len(set(titles)), table


def test_every_column_of_the_table_of_systems_has_its_own_rank() -> None:
    ranks = [number.rank for number in list_numbers("systems")]
    assert len(ranks) == len(set(ranks))
    assert max(ranks) < 1000


def test_needs_are_told_of_metrics_that_exist() -> None:
    assert set(NEEDS) <= set(registry.list("metric"))


@pytest.mark.parametrize(
    ("key", "declared"),
    [
        ("pass_rate@needle", "pass_rate"),
        ("mean_score:recall", "mean_score"),
        ("mean_score:judge_score", "mean_score:judge_score"),
        ("dataset:needle", "dataset:{tag}"),
        ("official:bfcl", "official:{tag}"),
        ("mean_score", "mean_score"),
    ],
)
def test_a_key_with_a_dataset_or_a_score_has_the_declaration_of_its_number(key: str, declared: str) -> None:
    assert get_number(key).key == declared


def test_a_key_of_a_user_has_no_direction_and_no_limits() -> None:
    number = get_number("my_number")
    assert (number.title, number.better, number.gate, number.headline) == ("my_number", "", "", False)
    assert math.isinf(number.high)


def test_the_score_of_several_datasets_is_the_macro_score() -> None:
    assert [choose_score_key(datasets) for datasets in (0, 1, 2)] == [MEAN_SCORE, MEAN_SCORE, MACRO_SCORE]
    assert find_score_key([{MEAN_SCORE: 1.0}, {MACRO_SCORE: 1.0}]) == MACRO_SCORE
    assert find_score_key([{MEAN_SCORE: 1.0}]) == MEAN_SCORE


def test_keys_by_metric_leave_out_what_only_a_second_metric_of_its_kind_gives() -> None:
    assert list_keys("mean-score") == (MEAN_SCORE,)
    assert JUDGE_SCORE in NUMBERS
    assert list_keys("") == ()
    assert list_keys("latency", by_dataset=True) == ()
