"""Records from local files: `DIR/<dataset>/`, in the authors' own layout, the hub's, or as `datasets fetch` wrote them.

The card says which file serves which configuration. Nothing is downloaded.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from context_bench.datasets.catalog import Card, Config
from context_bench.datasets.formats import FORMATS
from context_bench.datasets.public.raw_files import Placed, RawFile, digest, expand, find_reader, read_files
from context_bench.errors import DataError

__all__ = ["NOTE", "LocalFiles", "patterns_for"]

NOTE = "SOURCE"
"""The file that `datasets fetch` writes beside the records, as JSON: repository and revision by configuration."""

_SUFFIXES = [*FORMATS, *(f"{suffix}.gz" for suffix in FORMATS)]


class LocalFiles:
    """The records of one configuration in a folder."""

    def __init__(self, folder: Path, card: Card, config: Config, split: str) -> None:
        self._folder, self._card, self._config, self._split = folder, card, config, split
        self._own = find_reader(config.reader)
        self.files, self._reader = self._find_files()

    def __iter__(self) -> Iterator[Placed]:
        return read_files(self.files, self._own if self._reader else None)

    @property
    def facts(self) -> Mapping[str, Any]:
        """The files with their digests, and the revision where they were fetched."""
        paths = dict.fromkeys(file.path for file in self.files)
        facts: dict[str, Any] = {"files": {str(path.relative_to(self._folder)): digest(path) for path in paths}}
        return facts | self._read_note()

    def _read_note(self) -> dict[str, Any]:
        try:
            note = json.loads((self._folder / NOTE).read_text(encoding="utf-8"))
            return dict(note[self._config.name])
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def _find_files(self) -> tuple[list[RawFile], bool]:
        """Find the files that serve, and whether the dataset's own reader reads them."""
        own = (self._config.files, self._config.hub_files) if self._split == self._config.split else ()
        for patterns in own:
            if self._own is not None:
                together = [file for pattern in patterns for file in _find_matches(self._folder, pattern)]
                if together:
                    return together, True
            else:
                for pattern in patterns:
                    if found := _find_matches(self._folder, pattern):
                        return found, False
        for pattern in _list_usual_patterns(self._card, self._config, self._split):
            if found := _find_matches(self._folder, pattern):
                return found, False
        raise DataError(self._explain_nothing())

    def _explain_nothing(self) -> str:
        wanted = " or ".join(patterns_for(self._card, self._config, self._split))
        there = sorted(path.relative_to(self._folder).as_posix() for path in self._folder.rglob("*") if path.is_file())
        shown = ", ".join(there[:8]) + (", ..." if len(there) > 8 else "")
        tag = f"{self._card.name}:{self._config.name}"
        return f"{self._folder}: no file for {tag} (split {self._split}); wanted {wanted}; there: {shown or 'nothing'}"


def patterns_for(card: Card, config: Config, split: str | None = None) -> list[str]:
    """List where the files of a configuration are looked for, in order, for people to read."""
    split = split or config.split
    own = [*config.files, *config.hub_files] if split == config.split else []
    return [*dict.fromkeys(own), *(f"{stem}.*" for stem in _list_stems(card, config, split))]


def _list_stems(card: Card, config: Config, split: str) -> list[str]:
    stems = [f"{config.name}/{split}"]
    if config.hub_config:
        stems.append(f"{config.hub_config}/{split}")
    if config.name == card.default_config:
        stems += [split, f"data/{split}"]
    return list(dict.fromkeys(stems))


def _list_usual_patterns(card: Card, config: Config, split: str) -> Iterator[str]:
    for stem in _list_stems(card, config, split):
        for suffix in _SUFFIXES:
            yield f"{stem}{suffix}"
            yield f"{stem}-*{suffix}"  # the shards of the hub: test-00000-of-00002.parquet


def _find_matches(folder: Path, pattern: str) -> list[RawFile]:
    outer, _, member = pattern.partition("!")
    paths = sorted(path for path in folder.glob(outer) if path.is_file())
    return [file for path in paths for file in expand(path, member or "*")]
