"""Comparison: every place where one system is compared with another.

`pairing.py` pairs the answers of two arms by example; everything else is built on it. `against_baseline.py` compares
the systems of a run with its baseline, `verdicts.py` holds the result; `runs.py` compares runs, which `run_inputs.py`
opens, as one `contest.py` for each system; `looks.py` judges a run while it goes on; `curves.py` draws quality against
tokens for the settings that `sweeps.py` finds; `front.py` finds the Pareto front; `gates.py` judges the `conditions.py`
of a gate; `plans.py` counts the examples that a question needs. The formulas are in `stats/`.
"""

from __future__ import annotations
