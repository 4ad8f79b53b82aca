"""The cards: complete, true to the registry, and found by tag."""

from __future__ import annotations

import pytest

from banks import each_case
from context_bench.core.judge import Scorer
from context_bench.datasets.catalog import Card, card_for, catalog, read_card
from context_bench.datasets.public import list_loaders
from context_bench.errors import UsageError
from context_bench.registry import import_object, registry

CARDS = sorted(catalog().values(), key=lambda card: card.name)
PUBLIC = [card for card in CARDS if card.adapter]
ADAPTERS = "context_bench.datasets.public.adapters"


@each_case("card", CARDS, ids=lambda card: card.name)
def test_a_card_says_what_a_user_needs(card: Card) -> None:
    assert card.summary
    assert card.summary.endswith(".")
    assert card.licence
    assert card.name == card.name.lower().replace("_", "-")


@each_case("card", CARDS, ids=lambda card: card.name)
def test_it_can_be_loaded_by_its_name(card: Card) -> None:
    assert callable(registry.get("dataset", card.name))


@each_case("card", PUBLIC, ids=lambda card: card.name)
def test_a_public_card_says_where_its_records_are(card: Card) -> None:
    assert callable(import_object(f"{ADAPTERS}.{card.adapter}"))
    assert card.default_config in card.configs
    assert card.columns
    for config in card.configs.values():
        assert config.parts or config.split
        assert config.parts or config.hub or config.files
        assert not config.reader or callable(import_object(f"{ADAPTERS}.{config.reader}"))
        assert set(config.parts) <= set(card.configs)
        assert not config.hub or config.hub.count("/") == 1  # short names are being retired


@each_case("card", CARDS, ids=lambda card: card.name)
def test_its_evaluators_exist_and_emit_the_primary_score(card: Card) -> None:
    fields = Scorer().fields_for([card.name])
    assert fields is None or card.primary in fields


def test_every_card_is_in_the_registry() -> None:
    assert set(list_loaders()) <= set(registry.list("dataset"))


@pytest.mark.parametrize("tag", ["needle", "needle:length=8000", "needle:length=8000|16000,n=5", "multi_needle:n=1"])
def test_a_card_by_tag(tag: str) -> None:
    card = card_for(tag)
    assert card is not None
    assert card.name == tag.partition(":")[0].replace("_", "-")


@pytest.mark.parametrize("tag", ["", "my-file", "Needle!", "needles", "/data/needle.jsonl"])
def test_ones_own_data_has_no_card(tag: str) -> None:
    assert card_for(tag) is None


def test_a_wrong_configuration_lists_the_right_ones_nearest_first() -> None:
    with pytest.raises(UsageError) as caught:
        catalog()["triviaqa"].config("rc.wikipdia")
    text = str(caught.value)
    assert text.startswith("triviaqa has no configuration 'rc.wikipdia'; it has rc.wikipedia, ")
    assert all(name in text for name in catalog()["triviaqa"].configs)


@pytest.mark.parametrize("typed", ["rc.nocontext", "RC.NoContext"])
def test_a_configuration_by_name_in_any_case(typed: str) -> None:
    assert catalog()["triviaqa"].config(typed).name == "rc.nocontext"


def test_the_default_configuration() -> None:
    assert catalog()["hotpotqa"].config().name == "distractor"
    assert catalog()["hotpotqa"].config("").name == "distractor"


CARD = {"summary": "A.", "adapter": "qa:squad", "evaluators": ["answer-quality"], "primary": "f1", "licence": "MIT"}


def test_what_all_configurations_share_is_said_once() -> None:
    configs = {"a": {"size": 3}, "b": {"split": "dev"}}
    card = read_card("x", "qa", {**CARD, "defaults": {"hub": "o/n", "split": "test"}, "configs": configs})
    assert [(each.hub, each.split, each.size) for each in card.configs.values()] == [
        ("o/n", "test", 3),
        ("o/n", "dev", None),
    ]
    assert card.default_config == "a"


@pytest.mark.parametrize(
    "wrong",
    [{"sumary": "x"}, {"aggregate": "median"}, {"configs": {"a": {"file": ["x"]}}}],
)
def test_a_card_with_a_wrong_key_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="x"):
        read_card("x", "qa", {**CARD, **wrong})
