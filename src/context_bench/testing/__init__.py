"""Contract checks for authors of parts: call one in your own test.

    from context_bench.testing import check_system

    def test_my_system():
        check_system(MySystem())

Each check uses the part as a run would, and raises `ContractError` (an AssertionError) with one sentence for each rule
that the part breaks. The parts that ship with the package must pass the same checks.
"""

from context_bench.testing.contract import ContractError, sample_examples, sample_results, sample_rows
from context_bench.testing.part_checks import (
    check_dataset,
    check_evaluator,
    check_memory_system,
    check_metric,
    check_reporter,
    check_system,
)

__all__ = [
    "ContractError",
    "check_dataset",
    "check_evaluator",
    "check_memory_system",
    "check_metric",
    "check_reporter",
    "check_system",
    "sample_examples",
    "sample_results",
    "sample_rows",
]
