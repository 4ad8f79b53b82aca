"""The engine that places the work of a run on a Ray cluster; `ray` itself is imported where it is used."""
