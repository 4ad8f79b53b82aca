"""Metamorphic tests of systems, proxies and memories: what must not change when the input changes without meaning.

`relations.py` has the relations, `cases.py` makes inputs that can be varied and shrunk, `targets.py` asks what is
tested, `session.py` runs it all.
"""

from context_bench.fuzz.cases import Case, make_case, read_case
from context_bench.fuzz.relations import RELATIONS, Relation
from context_bench.fuzz.session import Finding, Report, fuzz, replay

__all__ = ["RELATIONS", "Case", "Finding", "Relation", "Report", "fuzz", "make_case", "read_case", "replay"]
