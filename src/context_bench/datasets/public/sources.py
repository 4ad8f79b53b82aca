"""Opens the raw records of a public dataset: local files when their folder is there, else the hub."""

from __future__ import annotations

import os
from pathlib import Path

from context_bench.datasets.catalog import Card, Config
from context_bench.datasets.public.folder import LocalFiles
from context_bench.datasets.public.hub import HubFiles, HubTable
from context_bench.datasets.public.raw_files import Records
from context_bench.errors import UsageError

__all__ = ["DATA_DIR", "Records", "find_data_folder", "open_records"]

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
