"""Opens memory datasets as a user names them: a name with parameters, a JSONL file, or conversations of one's own."""

from __future__ import annotations

import inspect
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from context_bench.errors import DataError, UsageError, suggest_file
from context_bench.memory.questions import UNNAMED
from context_bench.refs import Ref, call_with, parse, resolve

__all__ = ["open_conversations"]

_ENDINGS = (".jsonl", ".json")


def open_conversations(
    given: Any,
    *,
    n: int | None = None,
    seed: int = 0,
    data_dir: str | None = None,
    types: Collection[str] | None = None,
) -> tuple[Iterable[Mapping[str, Any]], str]:
    """Return the conversations that a caller means, and the tag of their dataset.

    Args:
        given: An iterable of conversations, a reference such as `synthetic-memory:turns=500`, or a file.
        n: At most so many conversations, for loaders that take it.
        seed: For those that take one.
        data_dir: Where the records of public datasets are.
        types: Only questions of these types, for loaders that take it.
    """
    if not isinstance(given, str | Path):
        if not isinstance(given, Iterable) or isinstance(given, Mapping):
            kind = type(given).__name__
            raise UsageError(f"a memory dataset must be an iterable of conversations, a name or a file (got {kind})")
        return given, UNNAMED
    text = str(given)
    if text.endswith(_ENDINGS):
        return read_file(Path(text)), Path(text).stem
    refs = parse("memory_dataset", text)
    if len(refs) > 1:
        raise UsageError(f"{text!r}: a memory dataset takes one value for each parameter")
    (ref,) = refs
    loader = resolve("memory_dataset", ref)
    if not callable(loader):
        return loader, text
    takes = inspect.signature(loader).parameters
    said = {"n": n, "seed": seed, "data_dir": data_dir, "types": types}
    filled = {key: value for key, value in said.items() if value is not None and key in takes}
    first = next(iter(takes), None)
    loaded = call_with(loader, Ref(ref.text, ref.target, ref.argument, {**filled, **ref.parameters}), first)
    if not isinstance(loaded, Iterable):
        raise DataError(f"{text!r}: a loader must return an iterable of conversations (got {type(loaded).__name__})")
    return loaded, text


def read_file(path: Path) -> Iterator[Mapping[str, Any]]:
    """Read conversations from a file: one on each line of a .jsonl, a list in a .json."""
    if not path.is_file():
        raise UsageError(f"{path}: no such file{suggest_file(path)}")
    return _read_lines(path) if path.suffix == ".jsonl" else iter(_read_list(path))


def _read_lines(path: Path) -> Iterator[Mapping[str, Any]]:
    with path.open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield _parse(line, f"{path}, line {number}")


def _read_list(path: Path) -> list[Mapping[str, Any]]:
    document = _parse(path.read_text(encoding="utf-8-sig"), str(path))
    if not isinstance(document, list):
        raise DataError(f"{path}: it must hold a list of conversations")
    return document


def _parse(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise DataError(f"{where}: is not JSON: {error}") from None
