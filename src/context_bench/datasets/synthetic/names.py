"""Names and values of the facts that are hidden: distinctive words that the filler prose never uses.

A question repeats the whole name, so that lexical retrieval can find the sentence that answers it.
"""

from __future__ import annotations

from typing import NamedTuple

from context_bench.datasets.synthetic.draw import Draw
from context_bench.datasets.synthetic.wordlist import phrases, words

ADJECTIVES = words(
    """cobalt saffron crimson ivory emerald amber violet scarlet indigo turquoise jasper velvet copperplate granite
    silver golden obsidian coral maroon teal lunar solar polar arctic tropical desert nomad royal imperial feral
    sunken hollow crooked rugged veiled frozen blazing twisted gilded masked"""
)
NOUNS = words(
    """falcon heron otter panther lynx jackal raven condor pelican walrus mammoth phoenix griffin dragon unicorn
    kraken lantern compass anchor hourglass pendulum prism sextant trident chalice sceptre gauntlet obelisk
    pyramid citadel bastion rampart cathedral labyrinth glacier volcano canyon lagoon monsoon avalanche"""
)
THINGS = words("vault locker safe depot hangar strongroom")
LABELS = phrases("access code; serial number; inventory number; licence number; clearance code")


class Names:
    """A source of names and six-digit values, no two of which are the same."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._names: set[tuple[str, str]] = set()
        self._values: set[str] = set()

    def name(self) -> tuple[str, str]:
        """Return a new pair of words, such as ("cobalt", "falcon")."""
        while True:
            name = (self._draw.pick(ADJECTIVES), self._draw.pick(NOUNS))
            if name not in self._names:
                self._names.add(name)
                return name

    def other(self, name: tuple[str, str]) -> tuple[str, str]:
        """Return a pair that is not `name`, and in most cases shares one word with it."""
        adjective, noun = self._draw.pick(ADJECTIVES), self._draw.pick(NOUNS)
        near = self._draw.pick(((name[0], noun), (adjective, name[1]), (adjective, noun)))
        return near if near != name else self.other(name)

    def value(self) -> str:
        """Return a new number of six digits."""
        while True:
            value = self._draw.digits(6)
            if value not in self._values:
                self._values.add(value)
                return value


class Secret(NamedTuple):
    """One fact in prose: `sentence` says that the `label` for `subject` is `value`."""

    label: str
    subject: str
    value: str
    sentence: str


SENTENCES: tuple[str, ...] = (
    "The {label} for {subject} is {value}.",
    "According to the register, the {label} for {subject} is {value}.",
    "A note on the door says that the {label} for {subject} is {value}.",
    "Staff were reminded that the {label} for {subject} is {value}.",
    "As of the last inspection, the {label} for {subject} is {value}.",
)


def secret(draw: Draw, names: Names, label: str) -> Secret:
    """Make a new fact about `label`, in one natural sentence."""
    subject = f"the {' '.join(names.name())} {draw.pick(THINGS)}"
    value = names.value()
    return Secret(label, subject, value, draw.pick(SENTENCES).format(label=label, subject=subject, value=value))
