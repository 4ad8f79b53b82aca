"""Looks for texts where a memory keeps what it knows: in its list of memories, and in its files.

The pipeline calls this once the history is written, and hands the result to the evaluators as `processed["store"]`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from context_bench.memory.scoring.question_record import find_texts

__all__ = ["find_leftovers", "list_hidden_texts", "list_kept_texts"]

_BLOCK = 1 << 20


def list_hidden_texts(questions: Iterable[Any]) -> list[str]:
    """List what the questions of a conversation say must not be kept: what was to be forgotten, and secrets."""
    probes = (question.get("probe") or {} for question in questions)
    texts = (
        text for probe in probes if probe.get("kind") in ("forget", "secret") for text in probe.get("absent") or ()
    )
    return list(dict.fromkeys(map(str, texts)))


def list_kept_texts(questions: Iterable[Any]) -> list[str]:
    """List facts that the same users told and that may be kept: where none of them is seen, nothing is."""
    asked = [(question.get("user"), question.get("probe") or {}) for question in questions]
    users = {user for user, probe in asked if probe.get("kind") in ("forget", "secret")}
    return [
        str(text)
        for user, probe in asked
        if user in users and probe.get("kind") in ("fact", "forget_neighbour", "update")
        for text in probe.get("present") or ()
    ]


def find_leftovers(
    texts: Sequence[str],
    memories: Sequence[Any] | None = None,
    folder: str | Path | None = None,
    kept: Sequence[str] = (),
) -> dict[str, list[str] | None]:
    """Find which texts are still kept.

    Args:
        texts: What must be gone, as `list_hidden_texts` has it.
        memories: What the system's `memories()` returned: texts, or objects with a `text`.
        folder: Where the system keeps its files. They are searched as bytes, in UTF-8 and UTF-16: packed or encrypted
            text is not found.
        kept: What may be there, as `list_kept_texts` has it. A place that shows none of it could not have shown what
            must be gone.

    Returns:
        `memories` and `disk`: the texts that were found there; None where nobody could look.
    """
    wanted = [*texts, *kept]
    listed = find_texts(wanted, "\n".join(_read_memory(each) for each in memories)) if memories else None
    places = {"memories": listed, "disk": None if folder is None else _search_folder(wanted, Path(folder))}
    return {
        place: None if found is None or (kept and not found) else [text for text in texts if text in found]
        for place, found in places.items()
    }


def _read_memory(memory: Any) -> str:
    if isinstance(memory, dict):
        return str(memory.get("text") or memory.get("memory") or memory)
    return str(memory)


def _search_folder(texts: Sequence[str], folder: Path) -> list[str]:
    forms = {text: (text.encode(), text.encode("utf-16-le")) for text in texts}
    found: set[str] = set()
    overlap = max((len(form) for pair in forms.values() for form in pair), default=1) - 1
    for path in sorted(folder.rglob("*")):
        for block in _read_blocks(path, overlap) if path.is_file() else ():
            found |= {text for text, pair in forms.items() if any(form in block for form in pair)}
    return [text for text in texts if text in found]


def _read_blocks(path: Path, overlap: int) -> Iterator[bytes]:
    """Yield a file in blocks that overlap, so that no text falls between two of them."""
    try:
        with path.open("rb") as source:
            tail = b""
            while block := source.read(_BLOCK):
                yield tail + block
                tail = block[-overlap:] if overlap else b""
    except OSError:
        return  # a lock or a socket holds no text
