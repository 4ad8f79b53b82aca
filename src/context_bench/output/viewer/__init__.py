"""The viewer: the page of a report, served over a store that may be written at the same time, on loopback alone."""

from context_bench.output.viewer.view_server import ViewServer

__all__ = ["ViewServer"]
