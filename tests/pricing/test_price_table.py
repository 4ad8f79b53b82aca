"""Prices by model: the table that ships with the package, and files of the user's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from context_bench.errors import UsageError
from context_bench.pricing import Price, Prices, Tier, load_shipped_prices

SONNET = {"input": 3, "output": 15, "cached_input": 0.3, "cache_write_5m": 3.75, "cache_write_1h": 6}


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
        ("[m]\ninput = -1\noutput = 1\n", "numbers of at least 0"),
        ('[m]\ninput = "1"\noutput = 1\n', "numbers of at least 0"),
        ("[m]\ninput = true\noutput = 1\n", "numbers of at least 0"),
        ("[m]\ninput = nan\noutput = 1\n", "numbers of at least 0"),
        ("[m]\ninput = inf\noutput = 1\n", "numbers of at least 0"),
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


# How a model's name leads to an entry


@pytest.mark.parametrize(
    ("model", "entry", "how"),
    [
        ("gpt-4o", "gpt-4o", "exact"),
        ("gpt-4o-2024-05-13", "gpt-4o-2024-05-13", "exact"),  # an older version, which costs more
        ("gpt-4o-2099-01-31", "gpt-4o", "without its date"),
        ("claude-sonnet-4-6-20991231", "claude-sonnet-4-6", "without its date"),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5", "without its date"),
        ("openai/gpt-4o", "gpt-4o", "without its provider"),
        ("openrouter/anthropic/claude-opus-4-5", "claude-opus-4-5", "without its provider"),
        ("anthropic/claude-opus-4-6-20991231", "claude-opus-4-6", "without its provider and its date"),
        ("gemini-2.5-pro", "gemini/gemini-2.5-pro", "with a provider"),
    ],
)
def test_how_a_model_is_found(model: str, entry: str, how: str) -> None:
    match = load_shipped_prices().find(model)
    assert match is not None
    assert (match.entry, match.how) == (entry, how)
    assert match.price == dict(load_shipped_prices())[entry]


@pytest.mark.parametrize("model", [None, "", "gpt", "gpt-4o-mini-1234", "my-own-model", "default", "/"])
def test_a_model_that_is_not_listed_has_no_price(model: str | None) -> None:
    assert load_shipped_prices().find(model) is None
    assert load_shipped_prices().of(model) is None


def test_the_default_serves_what_is_not_listed() -> None:
    prices = Prices({"a": Price(1, 2), "default": Price(3, 4)})
    found = prices.find("b")
    assert found is not None
    assert (found.entry, found.how) == ("default", "default")


def test_a_file_adds_to_the_table_that_ships(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("[gpt-4o]\ninput = 1\noutput = 2\n[own]\ninput = 3\noutput = 4\n[default]\ninput = 5\noutput = 6\n")
    prices, shipped = Prices.from_file(path), load_shipped_prices()
    assert prices.of("own") == Price(3, 4)
    assert shipped.of("gpt-4o-2024-05-13") != prices.of("gpt-4o-2024-05-13") == prices.of("gpt-4o") == Price(1, 2)
    assert prices.of("claude-opus-4-5") == shipped.of("claude-opus-4-5") is not None
    assert prices.of("nobody/knows") == Price(5, 6)
    assert dict(prices) == {**dict(shipped), "gpt-4o": Price(1, 2), "own": Price(3, 4), "default": Price(5, 6)}
    assert prices.source == f"mine.toml, then {shipped.source}"


# The table that ships


def test_the_table_is_dated_and_names_its_source() -> None:
    prices = load_shipped_prices()
    assert "litellm" in prices.source
    assert prices.date in prices.source
    assert len(prices) > 250


def test_every_entry_of_the_table_costs_something() -> None:
    """An entry of 0 would make a model look free whose price is not known."""
    for name, price in load_shipped_prices():
        assert price.input + price.output > 0, name
        for each in (price, *(tier.price for tier in price.tiers)):
            writes = [value for value in (each.cache_write_5m, each.cache_write_1h) if value is not None]
            assert all(value >= each.input for value in writes), name
            assert each.cached_input is None or 0 < each.cached_input <= each.input, name
        assert {tier.above for tier in price.tiers} <= {100_000, 200_000, 272_000}


def test_published_prices_are_in_the_table() -> None:
    of = load_shipped_prices().of
    assert of("claude-sonnet-4-5") == Price(3, 15, 0.3, 3.75, 6)
    assert of("claude-sonnet-4-20250514") == of("anthropic/claude-sonnet-4") == Price(3, 15, 0.3, 3.75, 6)
    assert of("gpt-4o") == Price(2.5, 10, 1.25)
    assert (of("text-embedding-3-small"), of("mistral/mistral-embed")) == (Price(0.02, 0), Price(0.1, 0))
    tiers = (Tier(200_000, Price(2.5, 15, 0.25)),)
    assert of("gemini/gemini-2.5-pro") == Price(1.25, 10, 0.125, tiers=tiers, cache_minimum=2048)
    models = ("claude-opus-5-5", "claude-sonnet-4", "claude-opus-4-7", "claude-haiku-4-5")
    assert [price.cache_minimum for price in map(of, models) if price] == [512, 1024, 2048, 4096]


# All that a file may say


@pytest.mark.parametrize("name", ["prices.toml", "prices.json"])
def test_a_file_with_cache_writes_and_tiers(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    above = {"input": 6, "output": 22.5}
    if name.endswith("json"):
        path.write_text(
            json.dumps(
                {"models": {"m": {**SONNET, "cache_minimum": 512, "above_200k": above}}, "source": "us", "date": "2099"}
            )
        )
    else:
        values = "".join(f"{key} = {value}\n" for key, value in SONNET.items())
        path.write_text(f"[m]\n{values}cache_minimum = 512\n[m.above_200k]\ninput = 6\noutput = 22.5\n")
    prices = Prices.from_file(path)
    assert prices.of("m") == Price(3, 15, 0.3, 3.75, 6, tiers=(Tier(200_000, Price(6, 22.5)),), cache_minimum=512)
    assert prices.source.startswith("us, then " if name.endswith("json") else f"{name}, then ")
    price = prices.of("m")
    assert price is not None
    assert price.to_dict() == {**SONNET, "cache_minimum": 512, "above_200k": above}


@pytest.mark.parametrize(
    "more", ["above_200k = 3", "[m.above_200k]\ninput = 1", "[m.above_0k]\ninput = 1\noutput = 1", "above = 1"]
)
def test_a_tier_that_makes_no_sense(tmp_path: Path, more: str) -> None:
    path = tmp_path / "prices.toml"
    path.write_text(f"[m]\ninput = 1\noutput = 1\n{more}\n")
    with pytest.raises(UsageError, match=r"the price of 'm.*needs input and output"):
        Prices.from_file(path)
