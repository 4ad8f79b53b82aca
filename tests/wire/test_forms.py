"""Which API is spoken at which path."""

from __future__ import annotations

import pytest

from context_bench.config import RunOptions
from context_bench.wire.forms import FORMS, asks_model, find_form


@pytest.mark.parametrize(
    ("path", "api", "asks"),
    [
        ("/v1/chat/completions", "openai", True),
        ("/v1/messages", "anthropic", True),
        ("/v1/messages/count_tokens", None, False),
        ("/v1/embeddings", None, False),
        ("/v1/responses", "responses", True),
    ],
)
def test_paths(path: str, api: str | None, asks: bool) -> None:
    form = find_form(path)
    assert (form and form.name) == api
    assert asks_model(path) is asks


def test_the_options_of_a_run_name_every_api() -> None:
    options = RunOptions.declared()
    assert list(options["api"].choices or ()) == [form.name for form in FORMS]
    for form in FORMS:
        assert f"{form.default_model} with --api {form.name}" in options["model"].help
        assert form.key_variable in options["api_key_env"].help
