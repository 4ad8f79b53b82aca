"""A file on the hub that is read in blocks, no further than it is asked for.

Parquet costs its footer and the pages of the rows that are taken; JSON and CSV, plain or as `.gz`, the blocks up
to the last record. Nothing is kept: what is to be read more than once is worth `datasets fetch`.
"""

from __future__ import annotations

import io
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from context_bench.datasets.formats import FORMATS
from context_bench.datasets.public.raw_files import RawFile

__all__ = ["RemoteFile"]

_BLOCK = 2 << 20
_BLOCKS_KEPT = 16
"""Columns of a table lie apart and are read in turns: each needs a block of its own."""


@dataclass(frozen=True)
class RemoteFile(RawFile):
    """One file of a dataset's repository at a commit; its path is `datasets/<repository>@<commit>/<file>`."""

    @classmethod
    def at(cls, address: str) -> RemoteFile | None:
        """Return the file behind an address of the hub; None if it cannot be read in part."""
        file = cls(Path(address.removeprefix("hf://")))
        return file if file.suffix in FORMATS and "::" not in address else None

    def _open_stored(self, stack: ExitStack) -> BinaryIO:
        from huggingface_hub import HfFileSystem

        kept = {"maxblocks": _BLOCKS_KEPT}
        system, name = HfFileSystem(), self.path.as_posix()
        blocks = system.open(name, "rb", block_size=_BLOCK, cache_type="blockcache", cache_options=kept)
        return cast(BinaryIO, io.BufferedReader(stack.enter_context(blocks)))
