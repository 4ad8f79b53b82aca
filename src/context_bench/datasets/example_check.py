"""Checks that an example can be used, before anything is sent for it.

Every example needs an `id` (text or whole number) that is unique within its dataset tag, and a `context` that is text;
a conversation in `turns` needs no context.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from context_bench.errors import DataError

FIELDS = (
    *("id", "context", "question", "prompt", "answer", "answers", "evidence", "documents", "relevant_ids", "turns"),
    *("tools", "choices", "correct_letter", "framing", "instruction", "dataset", "meta", "test"),
)
"""The fields of an example that a run knows; others are kept for the user's own systems and evaluators."""
_IDS = frozenset({str, int})
_LISTS = frozenset({"answers", "choices", "documents", "turns", "tools", "evidence"})
MAX_DEPTH = 100  # levels of objects and lists in a field. JSON writers end at 254, and a request puts some around it.

PLAIN_TYPES = frozenset({str, int, float, bool, type(None)})
"""Types of immutable values that contain no further values."""


class ExampleCheck:
    """Checks examples one after the other; stores ids as digests, so a large dataset takes little memory."""

    def __init__(self) -> None:
        self._seen: set[int] = set()

    def __call__(self, example: Any, where: str, tag: str = "", advice: str = "") -> None:
        """Raise DataError if the example cannot be used; the message contains `where` and `advice`."""
        if type(example) is not dict and not isinstance(example, Mapping):
            raise DataError(f"{where}: an example must be an object with fields (got {_name_kind(example)})")
        if "id" not in example or ("context" not in example and not example.get("turns")):
            missing = "context" if "id" in example else "id"
            there = ", ".join(map(str, example)) or "no fields at all"
            needed = f"{where}: no {missing!r}; every example needs 'id' and 'context', and this one has {there}"
            raise DataError(f"{needed}; {advice}" if advice else needed)
        identity = example["id"]
        if type(identity) not in _IDS and (isinstance(identity, bool) or not isinstance(identity, (str, int))):
            raise DataError(f"{where}: 'id' must be text or a whole number (got {_name_kind(identity)})")
        if not isinstance(example.get("context", ""), str):
            raise DataError(f"{where}: 'context' must be text (got {_name_kind(example['context'])})")
        if not _LISTS.isdisjoint(example):
            self._check_shapes(example, where)
        # 64 bits: among a million ids a false alarm has a chance of one in thirty million.
        digest = hash((str(example.get("dataset") or tag), identity))
        if digest in self._seen:
            raise DataError(f"{where}: duplicate id {identity!r}; ids must be unique within a dataset")
        self._seen.add(digest)

    @staticmethod
    def _check_shapes(example: Mapping[str, Any], where: str) -> None:
        for key, value in example.items():
            if key in _LISTS and value is not None and not isinstance(value, (list, tuple)):
                raise DataError(f"{where}: {key!r} must be a list (got {_name_kind(value)})")
        for turn in example.get("turns") or ():
            if not isinstance(turn, Mapping) or "role" not in turn:
                raise DataError(f"{where}: each of the 'turns' must be an object with 'role' and 'content'")
        for item in example.get("documents") or ():
            if not isinstance(item, Mapping) or "id" not in item or not isinstance(item.get("text"), str):
                raise DataError(f"{where}: each of the 'documents' must be an object with 'id' and 'text'")


def find_deep_fields(example: Mapping[str, Any]) -> list[str]:
    """Find the fields that are nested too deeply to be sent or stored."""
    if PLAIN_TYPES.issuperset(map(type, example.values())):
        return []
    return [key for key, value in example.items() if type(value) not in PLAIN_TYPES and _is_too_deep(value)]


def _is_too_deep(value: Any) -> bool:
    """Whether a value has more than MAX_DEPTH levels; they are counted in a loop, since recursion has its own limit."""
    if type(value) is dict and PLAIN_TYPES.issuperset(map(type, value.values())):
        return False
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [item for each in level for item in _list_members(each) if type(item) not in PLAIN_TYPES]
        if not level:
            return False
    return True


def _list_members(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list | tuple) else ()


def copy_example(example: Mapping[str, Any]) -> dict[str, Any]:
    """Copy an example so that a system may change it: containers are copied, texts are shared."""
    if PLAIN_TYPES.issuperset(map(type, example.values())):
        return dict(example)
    return {key: value if type(value) in PLAIN_TYPES else _copy_value(value) for key, value in example.items()}


def _copy_value(value: Any) -> Any:
    if type(value) in PLAIN_TYPES:
        return value
    if type(value) is dict:
        return {key: _copy_value(item) for key, item in value.items()}
    if type(value) is list:
        return [_copy_value(item) for item in value]
    from copy import deepcopy

    return deepcopy(value)


def _name_kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
    return names.get(type(value), f"a {type(value).__name__}")
