"""The cards: complete, true to the registry, and found by tag."""

from __future__ import annotations

import pytest

from context_bench.datasets.catalog import card_for, catalog, loaders
from context_bench.engine.scoring import Scorer
from context_bench.registry import import_object, registry

CARDS = sorted(catalog().values(), key=lambda card: card.name)


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.name)
def test_a_card_says_what_a_user_needs(card: object) -> None:
    assert card.summary  # type: ignore[attr-defined]
    assert card.summary.endswith(".")  # type: ignore[attr-defined]
    assert card.licence  # type: ignore[attr-defined]
    assert card.name == card.name.lower().replace("_", "-")  # type: ignore[attr-defined]


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.name)
def test_its_loader_can_be_imported_and_called(card: object) -> None:
    assert callable(import_object(card.loader))  # type: ignore[attr-defined]


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.name)
def test_its_evaluators_exist_and_emit_the_primary_score(card: object) -> None:
    fields = Scorer().fields_for([card.name])  # type: ignore[attr-defined]
    assert fields is None or card.primary in fields  # type: ignore[attr-defined]


def test_every_card_is_in_the_registry() -> None:
    assert set(loaders()) <= set(registry.list("dataset"))


@pytest.mark.parametrize("tag", ["needle", "needle:length=8000", "needle:length=8000|16000,n=5", "multi_needle:n=1"])
def test_a_card_by_tag(tag: str) -> None:
    card = card_for(tag)
    assert card is not None
    assert card.name == tag.partition(":")[0].replace("_", "-")


@pytest.mark.parametrize("tag", ["", "my-file", "Needle!", "needles", "/data/needle.jsonl"])
def test_ones_own_data_has_no_card(tag: str) -> None:
    assert card_for(tag) is None
