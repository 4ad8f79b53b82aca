"""Comparison of systems with each other, within a run and between runs.

`pairing.py` pairs the answers of two arms by example; all other modules use it. `against_baseline.py` compares the
systems of a run with its baseline; `verdicts.py` holds the result. `runs.py` compares the runs that `run_inputs.py`
opens, with one `contest.py` for each system. `looks.py` judges a run while it is running. `curves.py` computes quality
against tokens for the settings that `sweeps.py` finds, `front.py` the Pareto front. `gates.py` judges the
`conditions.py` of a gate. `plans.py` computes how many examples a question needs. The formulas are in `stats/`.
"""

from __future__ import annotations
