"""The engine that runs work on a Ray cluster; `ray` itself is imported where it is used."""
