"""The viewer: serves the report of a store, even while it is written, on loopback only."""

from context_bench.output.viewer.view_server import ViewServer

__all__ = ["ViewServer"]
