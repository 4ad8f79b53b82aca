"""Check the parts of this package. Run `pip install -e . pytest && pytest`."""

from context_bench_greetings import LastWords, NoGreetings, OneLine, Politeness, Worst, tickets

from context_bench.testing import (
    check_dataset,
    check_evaluator,
    check_memory_system,
    check_metric,
    check_reporter,
    check_system,
)


def test_parts():
    check_system(NoGreetings())
    check_dataset(tickets)
    check_evaluator(Politeness())
    check_metric(Worst())
    check_reporter(OneLine())
    check_memory_system(LastWords())
