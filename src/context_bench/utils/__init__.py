"""Holds `tokens` alone: the specification fixes that path."""
