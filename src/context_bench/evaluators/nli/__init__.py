"""Reads which label a reply gives: entailment, contradiction or neutral."""
