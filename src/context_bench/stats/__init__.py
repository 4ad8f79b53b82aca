"""Statistics: intervals, tests, verdicts and plans, as pure functions over sums.

Nothing here reads a row, a clock or a random number: callers add scores to small accumulators (`Moments`, `PairedSums`,
`RatioSums`, `ClusterSums`, `Values`, `RepeatSums`), so runs that keep no rows have statistics too. Only the standard
library is used; docs/statistics.md works each number by hand.
"""

# ruff: noqa: F403  (each module lists its public names in `__all__`)
from __future__ import annotations

from context_bench.stats.boundaries import *
from context_bench.stats.break_even import *
from context_bench.stats.clusters import *
from context_bench.stats.curves import *
from context_bench.stats.differences import *
from context_bench.stats.interval import *
from context_bench.stats.means import *
from context_bench.stats.planning import *
from context_bench.stats.quantiles import *
from context_bench.stats.ratios import *
from context_bench.stats.repeats import *
from context_bench.stats.verdicts import *
