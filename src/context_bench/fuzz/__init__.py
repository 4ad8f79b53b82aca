"""Metamorphic tests of systems, proxies and memories: changes of an input that must not change the result.

`relations.py` has the relations, `cases.py` makes inputs that can be varied and shrunk, `targets.py` calls the tested
system, and `session.py` runs the tests.
"""

from context_bench.fuzz.cases import Case, make_case, read_case
from context_bench.fuzz.relations import RELATIONS, Relation
from context_bench.fuzz.session import Finding, Report, fuzz, replay

__all__ = ["RELATIONS", "Case", "Finding", "Relation", "Report", "fuzz", "make_case", "read_case", "replay"]
