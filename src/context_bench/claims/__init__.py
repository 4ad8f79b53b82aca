"""Sealed bundles of runs, their verification, and published claims that are checked against measurements.

A bundle is a run that others can recompute: `bundle.py` writes it, `reading.py` reads one from a stranger,
`verify.py` computes its numbers again. A claim is a published sentence: `claim.py` reads it, `judging.py` decides it,
`report.py` shows it.
"""
