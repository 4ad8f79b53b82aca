"""A folder of records for machines without a network: what the hub has, as files that `--data-dir` reads.

DIR/<dataset>/<config>/<split>.jsonl    a table, one record a line
DIR/<dataset>/<file>                    a repository's own files, as they are
DIR/<dataset>/SOURCE                    repository and revision of each configuration, as JSON
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from context_bench.datasets.catalog import Card, Config, catalog
from context_bench.datasets.public.hub import HubFiles, HubTable
from context_bench.datasets.public.raw_files import NOTE, LocalFiles, Records
from context_bench.errors import UnknownName, UsageError

__all__ = ["DATA_DIR", "Records", "fetch", "find_data_folder", "open_records"]


def fetch(
    reference: str,
    to: Path,
    revision: str | None = None,
    n: int | None = None,
    on_record: Callable[[], None] = lambda: None,
) -> Iterator[Path]:
    """Write the records of `name` or `name:config` under the folder; each path once it is complete.

    Args:
        reference: A public dataset; `name:*` for all its configurations.
        to: The folder that `--data-dir` will name.
        revision: A branch, tag or commit.
        n: At most so many records of a table.
        on_record: Called for each record of a table, to show progress.
    """
    name, _, wanted = reference.partition(":")
    card = catalog().get(name.replace("_", "-"))
    if card is None or not card.adapter:
        raise UnknownName("public dataset", name, (each.name for each in catalog().values() if each.adapter))
    folder = to / card.name
    for config in _choose_configs(card, wanted):
        if not config.hub:
            raise UsageError(f"{card.name}:{config.name} is not on the hub: get its files from the authors")
        yield from _fetch(card, config, folder, revision or config.revision or None, n, on_record)


def _choose_configs(card: Card, wanted: str) -> list[Config]:
    if wanted == "*":
        return [config for config in card.configs.values() if not config.parts]
    chosen = card.config(wanted or None)
    return [card.config(part) for part in chosen.parts] or [chosen]


def _fetch(
    card: Card, config: Config, folder: Path, revision: str | None, n: int | None, on_record: Callable[[], None]
) -> Iterator[Path]:
    if config.hub_files:
        files = HubFiles(card, config, config.split, revision)
        for name in dict.fromkeys(each.partition("!")[0] for each in config.hub_files):
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(files.path(name), target)
            yield target
        _note(folder, config, files.facts)
        return
    table = HubTable(card, config, config.split, revision)
    target = folder / config.name / f"{config.split}.jsonl"
    _write(target, (record for _, record in islice(table, n)), on_record)
    _note(folder, config, table.facts)
    yield target


def _write(target: Path, records: Iterable[Any], on_record: Callable[[], None]) -> None:
    """Write a file as a whole or not at all: a download that breaks off leaves no file that looks complete."""
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(target.name + ".part")
    with unfinished.open("w", encoding="utf-8") as out:
        for record in records:
            out.write(json.dumps(record, ensure_ascii=False, default=str) + "\n")
            on_record()
    os.replace(unfinished, target)


def _note(folder: Path, config: Config, facts: Mapping[str, Any]) -> None:
    path = folder / NOTE
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        known = {}
    path.write_text(json.dumps({**known, config.name: dict(facts)}, indent=2) + "\n", encoding="utf-8")


DATA_DIR = "CONTEXT_BENCH_DATA"
"""The variable that names the folder of local records."""


def find_data_folder(data_dir: str | Path | None) -> Path | None:
    """Find the folder of local records: the one asked for, else the one in the environment; None for neither."""
    chosen = str(data_dir) if data_dir else os.environ.get(DATA_DIR)
    if not chosen:
        return None
    folder = Path(chosen)
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such folder ({'--data-dir' if data_dir else DATA_DIR})")
    return folder


def open_records(
    card: Card,
    config: Config,
    split: str | None = None,
    data_dir: str | Path | None = None,
    revision: str | None = None,
) -> Records:
    """Open the records of one configuration; nothing is read or asked of the hub before they are iterated."""
    folder = find_data_folder(data_dir)
    local = None if folder is None else _find_folder(folder, card.name)
    split = split or config.split
    if local is not None:
        if revision:
            raise UsageError(f"--revision is for the hub: {card.name} is read from {local}")
        return LocalFiles(local, card, config, split)
    if not config.hub:
        route = f"put its files under DIR/{card.name}/ and add --data-dir DIR"
        raise UsageError(
            f"{card.name}:{config.name} is not on the hub: {route} (context-bench datasets show {card.name})"
        )
    kind = HubFiles if config.hub_files else HubTable
    return kind(card, config, split, revision or config.revision or None)


def _find_folder(folder: Path, name: str) -> Path | None:
    return next((path for path in (folder / name, folder / name.replace("-", "_")) if path.is_dir()), None)
