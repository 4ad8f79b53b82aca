"""How work runs: the scheduler, the call of a system, the scoring of what it returned."""
