"""Sealed bundles of runs, their verification, and published claims checked against measurements.

A bundle is a run that others can recompute: `bundle.py` writes it, `reading.py` safely reads an untrusted one, and
`verify.py` recomputes its numbers. A claim is a published sentence: `claim.py` reads claims, `judging.py` decides
them, and `report.py` shows the verdicts.
"""
