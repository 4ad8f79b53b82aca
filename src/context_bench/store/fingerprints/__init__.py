"""Everything that makes a component's results differ, as one text: its own `fingerprint`, or else its code and state.

Code is all of the user's own that the component can reach, with the values of the names in it; libraries count by
their version. State is what it was made with. Whatever cannot be followed or described makes the whole unknown: then
its results are not used again, which costs something, where a stale one would be wrong.
"""

from __future__ import annotations

from typing import Any

from context_bench.store.fingerprints.describe import Describer, find_declared, is_extended
from context_bench.store.fingerprints.gold import may_read_gold

__all__ = ["fingerprint_of", "may_read_gold"]


def fingerprint_of(component: Any) -> str | None:
    """Describe what makes the results of a system or evaluator differ; None when that cannot be known.

    Its own `fingerprint` where it has one; `version` and parameters for an evaluator that has those;
    otherwise a digest of its code and state, from which no value can be read.
    """
    try:
        own = find_declared(component)
        if isinstance(own, str) and not is_extended(component):
            return own
        return Describer().describe_component(component)
    except Exception:  # noqa: BLE001 - whatever an object does when it is looked at, the run goes on without its key
        return None
