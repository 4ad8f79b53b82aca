"""Whether the answers of a system may depend on the gold, which it is given with the rest of the example."""

from __future__ import annotations

from typing import Any

from context_bench.store.fingerprints.origin import is_ours

__all__ = ["may_read_gold"]


def may_read_gold(system: Any) -> bool:
    """True unless the system declares `reads_gold = False`; our wrappers declare what is in them.

    What one of our classes declares does not hold for a user's class that changes it.
    """
    kind = type(system)
    if is_ours(kind):
        parts = getattr(system, "parts", None)
        inner = parts if isinstance(parts, list) else [system.system] if hasattr(system, "system") else []
        if inner:
            return any(may_read_gold(part) for part in inner)
    elif "reads_gold" not in getattr(system, "__dict__", {}):
        declaring = next((base for base in kind.__mro__ if "reads_gold" in vars(base)), None)
        if declaring is not None and is_ours(declaring):
            return True
    return getattr(system, "reads_gold", True) is not False
