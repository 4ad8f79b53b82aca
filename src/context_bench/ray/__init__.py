"""The engine that runs work on a Ray cluster; `ray` itself is imported only when it is used."""
