"""How a run works: the scheduler, the call of a system, and the scoring of its output."""
