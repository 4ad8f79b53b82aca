"""Everything that makes a component's results differ, as one text: its own `fingerprint`, or else its code and state.

Code is all of the user's own that the component can reach, with the values of the names in it; libraries count by
their version. State is what it was made with. Whatever cannot be followed or described makes the whole unknown: then
its results are not used again, which costs something, where a stale one would be wrong.
"""

from __future__ import annotations

from typing import Any

from context_bench import traits
from context_bench.store.fingerprints.describe import fingerprint_of
from context_bench.store.fingerprints.origin import is_ours

__all__ = ["fingerprint_of", "may_read_gold"]


def may_read_gold(system: Any) -> bool:
    """True unless the system declares `reads_gold = False`; our wrappers declare what is in them.

    What one of our classes declares does not hold for a user's class that changes it.
    """
    kind = type(system)
    if is_ours(kind):
        parts = traits.find_parts(system)
        if parts:
            return any(may_read_gold(part) for part in parts)
    elif "reads_gold" not in getattr(system, "__dict__", {}):
        declaring = next((base for base in kind.__mro__ if "reads_gold" in vars(base)), None)
        if declaring is not None and is_ours(declaring):
            return True
    return traits.may_read_gold(system)
