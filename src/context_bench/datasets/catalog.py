"""The catalog: each dataset is declared as data, in `cards/<family>.toml`.

Listings, wiring of evaluators, loading, prompts and docs read the cards; no code asks for a dataset by name.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from importlib.resources import files
from typing import Any

from context_bench.errors import UnknownName, UsageError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


AGGREGATES = ("", "mean-of-configs", "groups", "ratio-of-sums")


@dataclass(frozen=True)
class Config:
    """One configuration of a public dataset, and where to find its records."""

    name: str  # the text that a user types after the colon
    hub: str = ""  # the repository on the hub, `owner/name`
    hub_config: str = ""  # its name there; empty when the repository has no configurations
    split: str = ""  # the split that is used
    revision: str = ""  # the revision that is used unless the user pins another; empty for the main branch
    # files of the repository that are read instead of its table; `a.zip!b.jsonl` for one in an archive
    hub_files: tuple[str, ...] = ()
    # patterns of local files under `DIR/<dataset>/`. With a `reader` it gets every match of every pattern; without
    # one the first pattern that matches serves
    files: tuple[str, ...] = ()
    reader: str = ""  # `family:function` that reads those files, if they are not one record after another
    size: int | None = None  # the number of examples, if known
    parts: tuple[str, ...] = ()  # the configurations that this one stands for, such as all tasks; empty for most


@dataclass(frozen=True)
class Card:
    """The facts of one dataset: how it is loaded, scored and named."""

    name: str  # the name that a user types
    family: str  # the kind of task; also the file that declares it
    summary: str  # one line for listings
    evaluators: tuple[str, ...]  # names of the evaluators that apply to it
    primary: str  # the score that becomes `score`
    licence: str  # of the data
    loader: str = ""  # `module:function` that returns an iterable of examples; public datasets share one
    adapter: str = ""  # `family:function` that maps one record; empty for generated datasets
    instruction: str = ""  # sent after the question: the form of answer that the scorer expects
    evidence: str = ""  # the content of `evidence`, empty if the source has none
    stand_in: str = ""  # why the primary score is not the one that the authors report; empty when it is
    aggregate: str = ""  # how the official number comes from rows when it is not their mean
    aggregate_field: str = ""  # the score that a ratio of sums is taken of
    gated: bool = False  # whether the hub asks for consent to terms first
    unverified: tuple[str, ...] = ()  # facts on this card that rest on memory alone
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # the source schema by layout: `hub`, `files`
    default_config: str = ""  # the configuration that the bare name means
    configs: Mapping[str, Config] = field(default_factory=dict)  # all configurations by name
    note: str = ""  # remarks for users
    # the lowest score that its authors or readers would call good, if known
    threshold: float | None = None
    # why passing the usual threshold means little for its score; empty if it does mean something
    threshold_note: str = ""
    cluster: str = ""  # the field of `meta` that names the document or conversation shared by examples, if any

    def config(self, name: str | None = None) -> Config:
        """Return the named configuration, or the default one; the error for a wrong name lists the known names."""
        wanted = name or self.default_config
        key = _fold_name(wanted)
        for known, config in self.configs.items():
            if _fold_name(known) == key:
                return config
        near = difflib.get_close_matches(wanted, self.configs, n=len(self.configs), cutoff=0.0)
        raise UsageError(f"{self.name} has no configuration {wanted!r}; it has {', '.join(near)}")


def _fold_name(name: str) -> str:
    return name.replace("-", "_").lower()


@cache
def catalog() -> dict[str, Card]:
    cards: dict[str, Card] = {}
    for source in sorted(files(__package__).joinpath("cards").iterdir(), key=lambda item: item.name):
        if source.name.endswith(".toml"):
            family = source.name.removesuffix(".toml")
            for name, values in tomllib.loads(source.read_text(encoding="utf-8")).items():
                cards[name] = read_card(name, family, values)
    return cards


def read_card(name: str, family: str, values: Mapping[str, Any]) -> Card:
    """Make a card from its table; an unknown key is an error."""
    table = dict(values)
    shared = table.pop("defaults", {})
    own = table.pop("configs", {}) if "configs" in table or "adapter" not in table else {"default": {}}
    configs = {
        each: _build_checked(Config, f"{name}:{each}", {"name": each, **shared, **more}) for each, more in own.items()
    }
    table["columns"] = {layout: tuple(names) for layout, names in table.get("columns", {}).items()}
    table.setdefault("default_config", next(iter(configs), ""))
    card: Card = _build_checked(Card, name, {"name": name, "family": family, "configs": configs, **table})
    if card.aggregate not in AGGREGATES:
        raise ValueError(f"{name}: unknown aggregate {card.aggregate!r}")
    return card


def _build_checked(kind: type[Any], name: str, values: Mapping[str, Any]) -> Any:
    unknown = set(values) - {each.name for each in fields(kind)}
    if unknown:
        raise ValueError(f"{name}: unknown key {sorted(unknown)[0]!r} in its card")
    return kind(**{key: tuple(value) if isinstance(value, list) else value for key, value in values.items()})


def find_public_card(name: str) -> Card:
    """Find the card of a dataset whose records its authors publish."""
    card = catalog().get(name.replace("_", "-"))
    if card is None or not card.adapter:
        raise UnknownName("public dataset", name, (each.name for each in catalog().values() if each.adapter))
    return card


def card_for(tag: str) -> Card | None:
    """Find the card for a dataset tag such as `needle:length=8000`, or for its label; None for the user's own data."""
    name = _LABELS.get(tag, tag).partition(":")[0].replace("_", "-")
    return catalog().get(name) if name else None


_LABELS: dict[str, str] = {}


def label_dataset(label: str, tag: str) -> None:
    """Use a label for a dataset: examples with that label are scored like the dataset's own examples."""
    if label != tag and card_for(tag) is not None:
        _LABELS[label] = tag


def find_weak_thresholds(tags: Iterable[str]) -> dict[str, str]:
    """Find the datasets for which passing a threshold means little, each with the reason."""
    cards = {tag: card_for(tag) for tag in tags}
    return {tag: card.threshold_note for tag, card in cards.items() if card and card.threshold_note}
