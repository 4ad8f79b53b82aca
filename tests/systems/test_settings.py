"""Which settings cannot be used, and which make answers differ."""

from __future__ import annotations

from typing import Any

import pytest

from context_bench.errors import UsageError
from context_bench.systems import AnthropicProxy, OpenAIProxy
from context_bench.systems.settings import check_settings, settings_fingerprint


@pytest.mark.parametrize("value", [1, 0.5, None, 10**9])
def test_settings_that_can_be(value: float | None) -> None:
    check_settings(may_be_zero=False, timeout=value)


@pytest.mark.parametrize("value", [0, -1, "5", True, float("nan"), float("inf"), [1]])
def test_settings_that_cannot_be(value: Any) -> None:
    with pytest.raises(UsageError, match="timeout must be a number above 0"):
        check_settings(may_be_zero=False, retries=1, timeout=value)


def test_zero_where_it_may_be() -> None:
    check_settings(may_be_zero=True, retries=0)
    with pytest.raises(UsageError, match="retries must be a number of at least 0"):
        check_settings(may_be_zero=True, retries=-1)


def test_a_fingerprint_depends_on_every_setting_and_not_on_their_order() -> None:
    base = settings_fingerprint("kind/1", None, model="m", temperature=0)
    assert base == settings_fingerprint("kind/1", None, temperature=0, model="m")
    others = [
        settings_fingerprint("kind/2", None, model="m", temperature=0),
        settings_fingerprint("kind/1", None, model="n", temperature=0),
        settings_fingerprint("kind/1", None, model="m", temperature=None),
        settings_fingerprint("kind/1", None, model="m"),
        settings_fingerprint("kind/1", None, model="m", temperature=0, stream=True),
        settings_fingerprint("kind/1", None, model="m", temperature=0, extra={"a": [1, {"b": 2}]}),
        settings_fingerprint("kind/1", None, model="m", temperature=0, extra={"a": [1, {"b": 3}]}),
    ]
    assert len({base, *others}) == 1 + len(others)
    assert base is not None
    assert base.startswith("kind/1 ")


def test_a_fingerprint_shows_no_setting() -> None:
    assert "hunter2" not in str(settings_fingerprint("kind/1", None, model="hunter2"))


def _one(example: dict[str, Any]) -> list[Any]:
    return [1, example]


def _two(example: dict[str, Any]) -> list[Any]:
    return [2, example]


def test_functions_differ_by_their_code_and_what_it_names() -> None:
    assert settings_fingerprint("k", _one) != settings_fingerprint("k", _two)
    assert settings_fingerprint("k", _one) == settings_fingerprint("k", _one)


def closing_over(value: Any) -> Any:
    return lambda example: [value]


def helper(example: dict[str, Any]) -> list[Any]:
    return [3, example]


def test_a_function_of_messages_is_followed_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings_fingerprint("k", closing_over("a")) != settings_fingerprint("k", closing_over("b"))

    def calls(example: dict[str, Any]) -> list[Any]:
        return helper(example)

    before = settings_fingerprint("k", calls)
    monkeypatch.setitem(globals(), "helper", _one)
    assert settings_fingerprint("k", calls) not in (None, before)


def test_what_cannot_be_told_apart_has_no_fingerprint() -> None:
    assert settings_fingerprint("k", closing_over(object())) is None
    assert settings_fingerprint("k", lambda example: eval(example["context"])) is None


FINGERPRINTS = {
    "http://h:1": ("050f7db8114797b52669f98ea2c8c86f", "aad7bf911ef0ee1113104e1f68c2133c"),
    "http://h:1/v1": ("74f4a1fd8608e1261d6b626d5708416e", "29edc452867c04ce3ba202ae5724398b"),
    "http://h:1/x/{path}": ("6c1b0194ae193675782b60198b48f7f3", "2d7147415fa1eed2af0f7746a137c42e"),
}
"""As version 0.1 made them: stores are full of answers that are looked for by these."""


@pytest.mark.parametrize("url", FINGERPRINTS)
def test_the_answers_of_earlier_versions_are_found(url: str) -> None:
    openai, anthropic = FINGERPRINTS[url]
    one = OpenAIProxy(url.format(path="chat/completions"), headers={"X-A": "b"}, stream=True, extra_body={"a": 1})
    other = AnthropicProxy(url.format(path="messages"), "m", max_tokens=5)
    assert one.fingerprint == f"openai-proxy/1 {openai}"
    assert other.fingerprint == f"anthropic-proxy/1 {anthropic}"
