"""What tokens cost: by model, from the user's file, with cached input at its own price."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from context_bench.errors import UsageError
from context_bench.pricing import Price, Prices

USAGE = {"prompt_tokens": 1_000, "completion_tokens": 200, "cached_tokens": 600}


def test_cached_input_has_a_price_of_its_own() -> None:
    # 400 x 2 + 600 x 0.5 + 200 x 10 = 3,100 dollars for a million such requests' tokens
    assert Price(2.0, 10.0, 0.5).cost(USAGE) == pytest.approx(3_100 / 1e6)
    assert Price(2.0, 10.0).cost(USAGE) == pytest.approx((1_000 * 2 + 200 * 10) / 1e6)
    assert Price(2.0, 10.0, 0.0).cost(USAGE) == pytest.approx((400 * 2 + 200 * 10) / 1e6)


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        ({}, None),
        ({"prompt_tokens": 10}, None),
        ({"prompt_tokens": None, "completion_tokens": 1}, None),
        ({"prompt_tokens": "10", "completion_tokens": 1}, None),
        ({"prompt_tokens": 0, "completion_tokens": 0}, 0.0),
        ({"prompt_tokens": 10, "completion_tokens": 1, "cached_tokens": None}, 11e-6),
        # More cached than sent cannot be: no more than all of it is cached.
        ({"prompt_tokens": 10, "completion_tokens": 1, "cached_tokens": 99}, 6e-6),
        ({"prompt_tokens": 10, "completion_tokens": 1, "cached_tokens": "many"}, 11e-6),
        ({"prompt_tokens": 10, "completion_tokens": 1, "cached_tokens": -5}, 11e-6),
    ],
)
def test_what_servers_report(usage: dict[str, Any], cost: float | None) -> None:
    found = Price(1.0, 1.0, 0.5).cost(usage)
    assert found == (None if cost is None else pytest.approx(cost))


def test_a_price_by_model_and_one_for_the_rest() -> None:
    prices = Prices({"a": Price(1, 2), "default": Price(3, 4)})
    assert prices.of("a") == Price(1, 2)
    assert prices.of("b") == prices.of(None) == Price(3, 4)
    assert Prices({"a": Price(1, 2)}).of("b") is None


@pytest.mark.parametrize("name", ["prices.toml", "prices.json"])
def test_from_a_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    values = {"gpt-4o": {"input": 2.5, "output": 10, "cached_input": 1.25}, "org/m.o": {"input": 0, "output": 0}}
    if name.endswith("json"):
        path.write_text(json.dumps(values))
    else:
        path.write_text('[gpt-4o]\ninput = 2.5\noutput = 10\ncached_input = 1.25\n["org/m.o"]\ninput = 0\noutput = 0\n')
    prices = Prices.from_file(path)
    assert prices.of("gpt-4o") == Price(2.5, 10, 1.25)
    assert prices.of("org/m.o") == Price(0, 0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[m]\ninput = 1\n", "needs input and output"),
        ("[m]\ninput = 1\noutput = 1\ntyop = 1\n", "needs input and output"),
        ("m = 3\n", "needs input and output"),
        ("[m]\ninput = -1\noutput = 1\n", "numbers from 0 on"),
        ('[m]\ninput = "1"\noutput = 1\n', "numbers from 0 on"),
        ("[m]\ninput = true\noutput = 1\n", "numbers from 0 on"),
        ("[m]\ninput = nan\noutput = 1\n", "numbers from 0 on"),
        ("[m]\ninput = inf\noutput = 1\n", "numbers from 0 on"),
        ("[m\n", "are broken"),
    ],
)
def test_a_file_that_makes_no_sense(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "prices.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=said) as raised:
        Prices.from_file(path)
    assert str(path) in str(raised.value)


@pytest.mark.parametrize("content", [b"[1, 2]", b"3", b"\xff\xfe", b"null"])
def test_json_that_is_no_table(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "prices.json"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"prices\.json"):
        Prices.from_file(path)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read the prices"):
        Prices.from_file(tmp_path / "prices.toml")
    with pytest.raises(UsageError, match="cannot read the prices"):
        Prices.from_file(tmp_path)
