"""`context-bench prices`: the table, one model, and as data that `--prices` reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command import called
from context_bench.pricing import Prices, load_shipped_prices


def test_one_model_with_its_tiers(tmp_path: Path) -> None:
    shown = called("prices", "gpt-5.4", "--wide", cwd=tmp_path)
    assert shown.returncode == 0
    head, model, tier = (line.split() for line in shown.stdout.splitlines())
    assert head == ["model", "input", "cached", "write", "5m", "write", "1h", "output"]
    assert model == ["gpt-5.4", "2.5", "0.25", "15"]
    assert tier == ["prompt", "above", "272,000", "5", "0.5", "22.5"]
    assert load_shipped_prices().source in shown.stderr


def test_all_models_and_a_part_of_names(tmp_path: Path) -> None:
    everything = called("prices", "--output", "json", cwd=tmp_path)
    assert len(json.loads(everything.stdout)["models"]) == len(load_shipped_prices())
    some = json.loads(called("prices", "HAIKU", "--output", "json", cwd=tmp_path).stdout)["models"]
    assert len(some) > 2
    assert all("haiku" in name for name in some)


def test_which_entry_a_run_would_use(tmp_path: Path) -> None:
    shown = called("prices", "openai/gpt-4o-2099-01-01", cwd=tmp_path)
    assert shown.stdout.splitlines()[1].split() == ["gpt-4o", "2.5", "1.25", "10"]
    assert "openai/gpt-4o-2099-01-01 is found without its provider and its date" in shown.stderr


def test_what_is_printed_can_be_changed_and_given_back(tmp_path: Path) -> None:
    document = json.loads(called("prices", "--output", "json", cwd=tmp_path).stdout)
    document["models"]["mine"] = {"input": 1, "output": 2}
    (tmp_path / "mine.json").write_text(json.dumps(document))
    prices = Prices.from_file(tmp_path / "mine.json")
    assert dict(prices).keys() == {*dict(load_shipped_prices()), "mine"}
    assert all(prices.of(name) == price for name, price in load_shipped_prices())
    shown = called("prices", "mine", "--prices", "mine.json", cwd=tmp_path)
    assert shown.stdout.splitlines()[1].split() == ["mine", "1", "2"]


@pytest.mark.parametrize(("name", "hint"), [("gpt-4p", "gpt-4"), ("nonsense", "no entry matches")])
def test_a_model_that_is_not_priced(tmp_path: Path, name: str, hint: str) -> None:
    shown = called("prices", name, cwd=tmp_path)
    assert shown.returncode == 2
    assert f"{name!r} has no price" in shown.stderr
    assert hint in shown.stderr
