"""The parameters of Punkt: NLTK's English data where it is installed, else our own.

The data of NLTK has no clear licence, so it is not shipped here. It is looked for where NLTK looks
(`NLTK_DATA` first) and in an installed `llama-index-core`, which carries it; nothing is downloaded.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from context_bench.evaluators.ifeval.parameters import Parameters
from context_bench.evaluators.ifeval.punkt_english import BUILT_IN

__all__ = ["find_data", "name_data_source", "parameters", "read_data"]

_ENGLISH = Path("tokenizers", "punkt_tab", "english")
_FILES = ("abbrev_types.txt", "collocations.tab", "sent_starters.txt", "ortho_context.tab")


def _list_roots() -> Iterator[Path]:
    yield from (Path(each) for each in os.environ.get("NLTK_DATA", "").split(os.pathsep) if each)
    yield Path.home() / "nltk_data"
    yield from (Path(sys.prefix, *parts, "nltk_data") for parts in ((), ("share",), ("lib",)))
    if os.name == "nt":
        yield Path(os.environ.get("APPDATA", "C:\\"), "nltk_data")
        yield from (Path(f"{drive}:\\nltk_data") for drive in "CDE")
    else:
        yield from (
            Path(base, "nltk_data") for base in ("/usr/share", "/usr/local/share", "/usr/lib", "/usr/local/lib")
        )
    yield from (Path(entry, "llama_index", "core", "_static", "nltk_cache") for entry in sys.path if entry)


def find_data() -> Path | None:
    """The folder of the English data (`punkt_tab/english`), or None."""
    for root in _list_roots():
        folder = root / _ENGLISH
        if all((folder / name).is_file() for name in _FILES):
            return folder
    return None


def read_data(folder: Path) -> Parameters:
    """The parameters that a `punkt_tab` folder holds."""
    abbreviations, collocations, starters, spelling = (
        (folder / name).read_text(encoding="utf-8").split("\n") for name in _FILES
    )
    pairs = (tuple(line.split("\t")) for line in collocations if line)
    return Parameters(
        frozenset(filter(None, abbreviations)),
        frozenset((first, second) for first, second in pairs),
        frozenset(filter(None, starters)),
        {word: int(flags) for word, _, flags in (line.partition("\t") for line in spelling) if flags},
    )


@cache
def parameters() -> Parameters:
    """The parameters for this process."""
    folder = find_data()
    return read_data(folder) if folder else BUILT_IN


def name_data_source() -> str:
    """`nltk-data` or `built-in`: kept with the scores, since the two may differ by a sentence."""
    return "built-in" if parameters() is BUILT_IN else "nltk-data"
