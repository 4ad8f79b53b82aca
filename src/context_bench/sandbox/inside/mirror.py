"""Repeats on the caller's own objects what a function in another process did to its copies of them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["mirror"]


def mirror(old: Any, new: Any) -> Any:
    """Give `old` the content of `new` in place where it can be changed; what stands for it afterwards.

    Objects inside that can be changed are kept too, so that other references to them see the change.
    """
    kind = type(old)
    if type(new) is not kind:
        return new
    if kind is tuple:
        return tuple(mirror(a, b) for a, b in zip(old, new)) if len(old) == len(new) else new
    if kind is list:
        kept = [mirror(a, b) for a, b in zip(old, new)]
        old[:] = kept + new[len(kept) :]
        return old
    if isinstance(old, dict):
        content = {key: mirror(old[key], value) if key in old else value for key, value in new.items()}
        old.clear()
        old.update(content)
        return old
    if kind in (set, bytearray) or (kind.__module__, kind.__name__) == ("collections", "deque"):
        old.clear()
        (old.update if kind is set else old.extend)(new)
        return old
    return new
