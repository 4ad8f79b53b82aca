"""Statistics: intervals, tests, verdicts and plans, as pure functions over sums.

Nothing here reads a row, a clock or a random number: the rest adds scores to the small accumulators (`Moments`,
`PairedSums`, `RatioSums`, `ClusterSums`, `Values`, `RepeatSums`, `CurveSums`), which merge and go to JSON, so that a
run that keeps no rows has its statistics too. The standard library alone; docs/statistics.md works each number by hand.
Modules are imported when one of their names is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from context_bench._lazy import lazy_names

if TYPE_CHECKING:
    from context_bench.stats.boundaries import crossing_chance, find_critical, look_boundary
    from context_bench.stats.break_even import memory_queries_to_repay, rewrite_break_even, rewrite_turns_to_repay
    from context_bench.stats.clusters import (
        ClusterSums,
        ScoreSums,
        clustered_difference,
        clustered_mean,
        clustered_ratio,
        compare_means,
    )
    from context_bench.stats.compare import (
        AnsweredExample,
        Comparison,
        DatasetPairs,
        Pairing,
        PairSums,
        ScoredRow,
        average_answers,
        compare_rows,
    )
    from context_bench.stats.conditions import FAILS, HOLDS, Condition, Judgement, parse_condition
    from context_bench.stats.curves import (
        CurveSums,
        Setting,
        area_difference,
        area_interval,
        area_of_intervals,
        area_weights,
        find_common_range,
        find_largest_saving,
    )
    from context_bench.stats.differences import (
        UNSEEN_PAIRS,
        Difference,
        PairedSums,
        average_differences,
        bound_losses,
        paired_difference,
        unpaired_difference,
    )
    from context_bench.stats.exact_tests import mcnemar_p, sign_flip_p
    from context_bench.stats.interval import FIRST, ROUGH, TOO_FEW, Interval
    from context_bench.stats.looks import Looks
    from context_bench.stats.means import (
        END_WEIGHT,
        Mean,
        Moments,
        average_means,
        effective_size,
        estimate_mean,
        mean_interval,
        share_interval,
        wilson_limits,
    )
    from context_bench.stats.noise import NoiseFloor, noise_of_repeats, noise_of_twins
    from context_bench.stats.planning import (
        find_detectable,
        least_n,
        n_for_difference,
        n_for_equivalence,
        n_for_non_inferiority,
        pass_fail_spread,
        power_of_difference,
        power_of_equivalence,
        power_of_non_inferiority,
    )
    from context_bench.stats.quantiles import Values, find_ranks, percentile, quantile_interval
    from context_bench.stats.ratios import RatioSums, limit_ratio, ratio_interval
    from context_bench.stats.repeats import (
        RepeatSums,
        chance_all_pass,
        chance_any_passes,
        flip_share,
        pass_all_k,
        pass_at_k,
        repeat_share,
    )
    from context_bench.stats.verdicts import (
        ALL_GROUPS,
        DEFAULT_MARGIN,
        THESE_GROUPS,
        WORDS,
        Contrast,
        Needed,
        Verdict,
        decide_verdict,
        find_needed,
        find_winners,
        holm,
        judge_family,
    )

_HOMES = {
    "boundaries": ("crossing_chance", "find_critical", "look_boundary"),
    "break_even": ("memory_queries_to_repay", "rewrite_break_even", "rewrite_turns_to_repay"),
    "clusters": (
        "ClusterSums", "ScoreSums", "clustered_difference", "clustered_mean", "clustered_ratio", "compare_means",
    ),
    "compare": (
        "AnsweredExample", "Comparison", "DatasetPairs", "PairSums", "Pairing", "ScoredRow", "average_answers",
        "compare_rows",
    ),
    "conditions": ("Condition", "FAILS", "HOLDS", "Judgement", "parse_condition"),
    "curves": (
        "CurveSums", "Setting", "area_difference", "area_interval", "area_of_intervals", "area_weights",
        "find_common_range", "find_largest_saving",
    ),
    "differences": (
        "Difference", "PairedSums", "UNSEEN_PAIRS", "average_differences", "bound_losses", "paired_difference",
        "unpaired_difference",
    ),
    "exact_tests": ("mcnemar_p", "sign_flip_p"),
    "interval": ("FIRST", "Interval", "ROUGH", "TOO_FEW"),
    "looks": ("Looks",),
    "means": (
        "END_WEIGHT", "Mean", "Moments", "average_means", "effective_size", "estimate_mean", "mean_interval",
        "share_interval", "wilson_limits",
    ),
    "noise": ("NoiseFloor", "noise_of_repeats", "noise_of_twins"),
    "planning": (
        "find_detectable", "least_n", "n_for_difference", "n_for_equivalence", "n_for_non_inferiority",
        "pass_fail_spread", "power_of_difference", "power_of_equivalence", "power_of_non_inferiority",
    ),
    "quantiles": ("Values", "find_ranks", "percentile", "quantile_interval"),
    "ratios": ("RatioSums", "limit_ratio", "ratio_interval"),
    "repeats": (
        "RepeatSums", "chance_all_pass", "chance_any_passes", "flip_share", "pass_all_k", "pass_at_k", "repeat_share",
    ),
    "verdicts": (
        "ALL_GROUPS", "Contrast", "DEFAULT_MARGIN", "Needed", "THESE_GROUPS", "Verdict", "WORDS", "decide_verdict",
        "find_needed", "find_winners", "holm", "judge_family",
    ),
}  # fmt: skip

__all__ = [
    "ALL_GROUPS", "DEFAULT_MARGIN", "END_WEIGHT", "FAILS", "FIRST", "HOLDS", "ROUGH", "THESE_GROUPS", "TOO_FEW",
    "UNSEEN_PAIRS", "WORDS", "AnsweredExample", "ClusterSums", "Comparison", "Condition", "Contrast", "CurveSums",
    "DatasetPairs", "Difference", "Interval", "Judgement", "Looks", "Mean", "Moments", "Needed", "NoiseFloor",
    "PairSums", "PairedSums", "Pairing", "RatioSums", "RepeatSums", "ScoreSums", "ScoredRow", "Setting", "Values",
    "Verdict", "area_difference", "area_interval", "area_of_intervals", "area_weights", "average_answers",
    "average_differences", "average_means", "bound_losses", "chance_all_pass", "chance_any_passes",
    "clustered_difference", "clustered_mean", "clustered_ratio", "compare_means", "compare_rows", "crossing_chance",
    "decide_verdict", "effective_size", "estimate_mean", "find_common_range", "find_critical", "find_detectable",
    "find_largest_saving", "find_needed", "find_ranks", "find_winners", "flip_share", "holm", "judge_family", "least_n",
    "limit_ratio", "look_boundary", "mcnemar_p", "mean_interval", "memory_queries_to_repay", "n_for_difference",
    "n_for_equivalence", "n_for_non_inferiority", "noise_of_repeats", "noise_of_twins", "paired_difference",
    "parse_condition", "pass_all_k", "pass_at_k", "pass_fail_spread", "percentile", "power_of_difference",
    "power_of_equivalence", "power_of_non_inferiority", "quantile_interval", "ratio_interval", "repeat_share",
    "rewrite_break_even", "rewrite_turns_to_repay", "share_interval", "sign_flip_p", "unpaired_difference",
    "wilson_limits",
]  # fmt: skip

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
