"""`--engine ray`: its settings, and the parts that it refuses."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from context_bench.core.schedule import Engine, LocalEngine, Placement
from context_bench.errors import UsageError, warn
from context_bench.traits import is_endpoint, remembers, system_traits
from context_bench.types import System


class RayEngine:
    """Runs systems and slow evaluators on the workers of a Ray cluster, and sends requests from them.

    Args:
        address: The address of the cluster; None uses `RAY_ADDRESS`, or starts a cluster on this machine for the run.
        resources: What each worker needs, such as `{"num_gpus": 1, "num_cpus": 2}`; it overrides the systems'
            declarations.
        workers: The largest number of workers; None starts as many as fit.
    """

    name = "ray"

    def __init__(
        self, address: str | None = None, resources: Mapping[str, float] | None = None, workers: int | None = None
    ) -> None:
        self.address, self.resources, self.workers = address, dict(resources or {}), workers

    def check(self, systems: Any, *, debug: bool) -> None:
        """Refuse parts that cannot run on a cluster, before anything is built or sent."""
        if debug:
            raise UsageError("the debugger opens in this process: remove --engine ray or --pdb")
        for each in systems if isinstance(systems, list | tuple) else [systems]:
            if remembers(each):
                raise UsageError(
                    f"{type(each).__name__} is a memory system, whose state lives in one place: remove --engine ray"
                )

    async def open(self, systems: Sequence[System], parts: Sequence[Any], max_workers: int | None) -> Placement:
        """Connect to the cluster and start its workers."""
        from context_bench.ray.cluster import RayCluster
        from context_bench.ray.ray_placement import RayPlacement
        from context_bench.ray.shipping import find_user_modules, stage_modules

        cluster = RayCluster(self.address)
        with tempfile.TemporaryDirectory(prefix="context-bench-") as folder:
            staged = stage_modules(find_user_modules([*systems, *parts]), Path(folder))
            cluster.open(list(staged))
        try:
            if cluster.has_other_machines():
                _check_other_machines(systems)
            workers = self.workers if self.workers is not None else max_workers
            return RayPlacement(
                cluster,
                systems,
                self.resources,
                workers,
                self.workers or max(1, cluster.count_cpus()),
                max_workers,
                lambda frames: _restore(frames, staged),
            )
        except BaseException:
            cluster.close()
            raise


def find_engine(given: Any) -> Engine:
    """Return the engine of that name, or the given one.

    Raises:
        UsageError: There is no such engine.
    """
    if given == "local":
        return LocalEngine()
    if given == "ray":
        return RayEngine()
    if not isinstance(given, Engine):
        raise UsageError(f"engine must be 'local', 'ray' or an Engine such as RayEngine(...) (got {given!r})")
    return given


def _check_other_machines(systems: Sequence[System]) -> None:
    """Refuse parts that need one machine, and warn of keys on unencrypted connections."""
    tapped = [each.name for each in systems if system_traits(each).list_unmatched is not None]
    if tapped:
        raise UsageError(
            f"{tapped[0]} is measured through a tap on this machine, but the cluster has other machines: "
            "remove --engine ray"
        )
    if os.environ.get("RAY_USE_TLS", "0") in ("", "0") and any(map(is_endpoint, systems)):
        warn(
            "requests go to the workers with their keys over Ray's connections, which are not encrypted: set "
            "RAY_USE_TLS=1 on the cluster, or use a network that you trust"
        )


def _restore(frames: list[str], staged: Mapping[str, str]) -> list[str]:
    """Make traceback frames point to the user's own files, not to the workers' copies."""
    restored = []
    for frame in frames:
        for copy, source in staged.items():
            before, name, after = frame.partition(f"/{Path(copy).name}")
            if name and "/" not in before.rpartition("_ray_pkg_")[2].partition("/")[2] and after[:1] in (":", "/"):
                frame = f"{source}{after}"
                break
        restored.append(frame)
    return restored
