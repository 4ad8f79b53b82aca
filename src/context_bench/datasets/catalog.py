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

from context_bench.errors import UsageError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


AGGREGATES = ("", "mean-of-configs", "groups", "ratio-of-sums")


@dataclass(frozen=True)
class Config:
    """One configuration of a public dataset: where its records are.

    Attributes:
        name: What a user types after the colon.
        hub: The repository on the hub, `owner/name`.
        hub_config: Its name there; empty when the repository has no configurations.
        split: The split that is used.
        revision: The revision that is used unless the user pins another; empty for the main branch.
        hub_files: Files of the repository that are read instead of its table; `a.zip!b.jsonl` for one in an archive.
        files: Patterns of local files under `DIR/<dataset>/`. With a `reader` it gets every match of every
            pattern; without one the first pattern that matches serves.
        reader: `family:function` that reads those files, where one record after another is not what they hold.
        size: The number of examples, where it is known.
        parts: The configurations that this one stands for, such as all tasks; empty for most.
    """

    name: str
    hub: str = ""
    hub_config: str = ""
    split: str = ""
    revision: str = ""
    hub_files: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    reader: str = ""
    size: int | None = None
    parts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Card:
    """The facts of one dataset: how it is loaded, scored and named.

    Attributes:
        name: What a user types.
        family: The kind of task; also the file that declares it.
        summary: One line for listings.
        evaluators: Names of the evaluators that apply to it.
        primary: The score that becomes `score`.
        licence: Of the data.
        loader: `module:function` that returns an iterable of examples; public datasets share one.
        adapter: `family:function` that maps one record; empty for generated datasets.
        instruction: Sent after the question: the form of answer that the scorer expects.
        evidence: What `evidence` holds, empty when the source has none.
        stand_in: Why the primary score is not the one that the authors report; empty when it is.
        aggregate: How the official number comes from rows when it is not their mean.
        aggregate_field: The score that a ratio of sums is taken of.
        gated: Whether the hub asks for consent to terms first.
        unverified: Facts on this card that rest on memory alone.
        columns: The source schema by layout: `hub`, `files`.
        default_config: The configuration that the bare name means.
        configs: All configurations by name.
        note: What a user should know before using it.
        cluster: The field of `meta` that names the document or conversation which examples share, where they do.
        threshold: The score from which its authors or readers would call an answer good, where that is known.
        threshold_note: Why passing the usual threshold means little for its score; empty where it means what it says.
    """

    name: str
    family: str
    summary: str
    evaluators: tuple[str, ...]
    primary: str
    licence: str
    loader: str = ""
    adapter: str = ""
    instruction: str = ""
    evidence: str = ""
    stand_in: str = ""
    aggregate: str = ""
    aggregate_field: str = ""
    gated: bool = False
    unverified: tuple[str, ...] = ()
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    default_config: str = ""
    configs: Mapping[str, Config] = field(default_factory=dict)
    note: str = ""
    threshold: float | None = None
    threshold_note: str = ""
    cluster: str = ""

    def config(self, name: str | None = None) -> Config:
        """Return a configuration, the default one without a name; the error for a wrong name lists the right ones."""
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
    """Return all cards by name."""
    cards: dict[str, Card] = {}
    for source in sorted(files(__package__).joinpath("cards").iterdir(), key=lambda item: item.name):
        if source.name.endswith(".toml"):
            family = source.name.removesuffix(".toml")
            for name, values in tomllib.loads(source.read_text(encoding="utf-8")).items():
                cards[name] = read_card(name, family, values)
    return cards


def read_card(name: str, family: str, values: Mapping[str, Any]) -> Card:
    """Make a card from its table; a key that cards do not have is an error."""
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


def card_for(tag: str) -> Card | None:
    """Find the card of a dataset tag such as `needle:length=8000`, or a label for one; None for the user's own data."""
    name = _LABELS.get(tag, tag).partition(":")[0].replace("_", "-")
    return catalog().get(name)


_LABELS: dict[str, str] = {}


def label_dataset(label: str, tag: str) -> None:
    """Let a label stand for a dataset: its examples are scored as those of the dataset are."""
    if label != tag and card_for(tag) is not None:
        _LABELS[label] = tag


def find_weak_thresholds(tags: Iterable[str]) -> dict[str, str]:
    """Find the datasets for which passing a threshold means little, each with the reason."""
    cards = {tag: card_for(tag) for tag in tags}
    return {tag: card.threshold_note for tag, card in cards.items() if card and card.threshold_note}
