"""Which failures mean that all other requests will fail too, and what is said of them."""

from __future__ import annotations

import pytest

from context_bench.errors import BadOutput, ConnectionFailed, RequestFailed, TimedOut
from context_bench.http.refusals import Asked, explain_refusal
from context_bench.http.secrets import Secret

ASKED = Asked("m-1", None, "OPENAI_API_KEY")


def failure(status: int, said: str, url: str = "https://api.example.com/v1/chat/completions") -> RequestFailed:
    error = RequestFailed("failed", status=status)
    error.url, error.said = url, said
    return error


@pytest.mark.parametrize(
    ("asked", "url", "advice"),
    [
        (ASKED, "https://h/v1/x", "no key was sent, so set OPENAI_API_KEY, or name the variable that has the key with"),
        (Asked("m", Secret("k", "MINE"), "V"), "https://h/v1/x", "the key in MINE is not accepted"),
        (Asked("m", Secret("k"), "V"), "https://h/v1/x", "the given key is not accepted"),
        (Asked("m", None, "V", ["Authorization"]), "https://h/v1/x", "the header Authorization is not accepted"),
        (Asked("m", None, "SET"), "http://h/v1/x", "SET needs https: --api-key-env SET sends it here"),
        (Asked("m", None, "SET"), "http://localhost/v1/x", "no key was sent, so set SET"),
    ],
)
def test_which_key_was_wrong(monkeypatch: pytest.MonkeyPatch, asked: Asked, url: str, advice: str) -> None:
    monkeypatch.setenv("SET", "value")
    told = explain_refusal(failure(401, "Unauthorized.", url), asked)
    assert told is not None
    assert told.startswith(f"{url} answered 401: Unauthorized: ")
    assert advice in told


@pytest.mark.parametrize(
    "words",
    [
        "The model `gpt-9.5-turbo` does not exist or you do not have access to it.",
        "model 'llama3.1:8b' not found, try pulling it first",
        "Invalid model: x",
        "model_not_found",
        "m-1 is not a valid model ID",
        "Model m-1 has been decommissioned",
    ],
)
@pytest.mark.parametrize("status", [400, 404, 422])
def test_words_for_an_unknown_model(status: int, words: str) -> None:
    assert "the request asked for 'm-1'" in str(explain_refusal(failure(status, words), ASKED))


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."),
        (400, "prompt is too long: 208310 tokens > 200000 maximum"),
        (400, "Invalid 'messages[0].content'"),
        (400, "The response was filtered due to the prompt triggering content management policy: content_filter"),
        (403, "Your input was flagged by moderation"),
        (404, "context window exceeded"),
        (408, "time-out"),
        (409, "conflict"),
        (413, "payload too large"),
        (429, "The model m-1 is not available: quota"),
        (500, "model not found in the registry"),
        (529, "overloaded"),
    ],
)
def test_words_that_may_be_about_one_example(status: int, words: str) -> None:
    assert explain_refusal(failure(status, words), ASKED) is None


def test_other_failures() -> None:
    cut, dead = ConnectionFailed("cut"), ConnectionFailed("h:1 is down")
    dead.never_connected = True
    other_api, strange = BadOutput("h answered with JSON that is no chat completion: {}"), BadOutput("strange")
    other_api.wrong_form = True
    told = [explain_refusal(each, ASKED) for each in (None, ValueError("x"), TimedOut("late"), cut, strange)]
    assert told == [None] * 5
    assert explain_refusal(dead, ASKED) == "h:1 is down: check that the server runs, and its host and port"
    assert str(explain_refusal(other_api, ASKED)).endswith("check the URL of the server")
