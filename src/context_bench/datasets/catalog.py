"""The catalog: each dataset is declared as data, in `cards/<family>.toml`.

Listings, wiring of evaluators, prompts and docs read the cards; no code asks for a dataset by name.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["Card", "card_for", "catalog", "loaders"]


@dataclass(frozen=True)
class Card:
    """What is known of one dataset.

    Attributes:
        name: What a user types.
        family: The kind of task; also the file that declares it.
        summary: One line for listings.
        loader: `module:function` that returns an iterable of examples.
        evaluators: Names of the evaluators that apply to it.
        primary: The score that becomes `score`.
        licence: Of the data.
        instruction: Sent after the question: the form of answer that the scorer expects.
        evidence: What `evidence` holds, empty when the source has none.
        stand_in: Why the primary score is not the one that the authors report; empty when it is.
    """

    name: str
    family: str
    summary: str
    loader: str
    evaluators: tuple[str, ...]
    primary: str
    licence: str
    instruction: str = ""
    evidence: str = ""
    stand_in: str = ""


@cache
def catalog() -> dict[str, Card]:
    """All cards by name."""
    cards: dict[str, Card] = {}
    for source in sorted(files(__package__).joinpath("cards").iterdir(), key=lambda item: item.name):
        if source.name.endswith(".toml"):
            family = source.name.removesuffix(".toml")
            for name, values in tomllib.loads(source.read_text(encoding="utf-8")).items():
                evaluators = tuple(values.pop("evaluators"))
                cards[name] = Card(name=name, family=family, evaluators=evaluators, **values)
    return cards


def loaders() -> dict[str, str]:
    """Import paths by name, for the registry."""
    return {name: card.loader for name, card in catalog().items()}


def card_for(tag: str) -> Card | None:
    """The card behind a dataset tag such as `needle:length=8000`; None for one's own data."""
    return catalog().get(tag.partition(":")[0].replace("_", "-"))
