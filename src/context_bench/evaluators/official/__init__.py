"""Scores by the rules of the authors of a benchmark, one file each."""
