"""Monitors watch a run and may stop it: limits, the budget, the first request, interim looks, progress."""
