"""The connection to a Ray cluster: opened for a run, follows its nodes, and closed afterwards."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from context_bench.errors import MissingExtra, UsageError

_NODE_DEATH_TIMEOUT = 2.0  # seconds in which the cluster finds out that a node is gone

_CONNECT_SECONDS = 5.0  # seconds in which a listening server accepts a connection

_connecting = threading.Lock()
"""Held by the run that opened this process's only Ray connection, until that run closes it."""


@dataclass(frozen=True)
class Node:
    """A live node: its id, its address, and its total resources."""

    id: str
    address: str
    resources: Mapping[str, float]

    def has_room(self, taken: Mapping[str, float], need: Mapping[str, float]) -> bool:
        """Whether a worker fits into the remaining resources."""
        return all(self.resources.get(key, 0.0) - taken.get(key, 0.0) >= value - 1e-9 for key, value in need.items())


class _Claim(Protocol):
    resources: dict[str, float]
    most: int | None


class RayCluster:
    """A running cluster, or one on this machine that is started and stopped.

    Args:
        address: Address of the cluster; None uses `RAY_ADDRESS`, or starts a cluster if that is not set.
    """

    def __init__(self, address: str | None = None) -> None:
        self._address = address
        self._ours = False
        self._own_node = ""
        self._claims: list[_Claim] = []

    def open(self, modules: Sequence[str]) -> None:
        """Connect, and bring modules to every worker.

        Raises:
            MissingExtra: Ray is not installed.
            UsageError: There is no such cluster, or another run of this process has opened a connection.
        """
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        try:
            import ray
        except ImportError as error:
            raise MissingExtra("--engine ray", "ray") from error
        exceptions = ray.exceptions
        self._ray = ray
        self.lost_errors: type[Exception] = exceptions.RayError
        self.task_error: type[Any] = exceptions.RayTaskError
        self._deaths = (exceptions.ActorDiedError, exceptions.WorkerCrashedError, exceptions.OutOfMemoryError)
        if ray.is_initialized() and not _connecting.locked():
            self._own_node = ray.get_runtime_context().get_node_id()
            return  # the caller's own connection, with the caller's own environment
        if not _connecting.acquire(blocking=False):
            raise UsageError(
                "another run of this process is on a Ray cluster: start this one when that has ended, or call "
                "ray.init() before both, so that they share your connection"
            )
        try:
            self._connect(self._address or os.environ.get("RAY_ADDRESS") or "local", modules)
        except BaseException:
            _connecting.release()
            raise
        self._ours = True
        self._own_node = ray.get_runtime_context().get_node_id()

    def _connect(self, address: str, modules: Sequence[str]) -> None:
        ray = self._ray
        on_loopback = _check_address(address, ray.util.get_node_ip_address)
        local = {"include_dashboard": False, "_node_ip_address": "127.0.0.1"} if address == "local" else {}
        loopback = _keep_to_loopback(ray._private.ray_constants) if local or on_loopback else nullcontext()
        try:
            logging.getLogger("ray").setLevel(logging.ERROR)  # it would print where it connects
            with _same_signals(), loopback:
                ray.init(
                    address,
                    runtime_env={"py_modules": list(modules)},
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                    **local,
                )
        except BaseException as error:
            ray.shutdown()  # also anything started before an interrupt
            if not isinstance(error, Exception):
                raise
            said = " ".join(str(error).split()) or type(error).__name__
            failed = "could be started on this machine" if local else f"could be reached at {address!r}"
            raise UsageError(f"no Ray cluster {failed}: {said}") from error

    def close(self) -> None:
        if self._ours:
            self._ray.shutdown()
            self._ours = False
            _connecting.release()

    def list_nodes(self) -> list[Node]:
        """List the live nodes."""
        return [
            Node(each["NodeID"], each["NodeManagerAddress"], each["Resources"])
            for each in self._ray.nodes()
            if each["Alive"]
        ]

    def has_own_node(self) -> bool:
        """Whether this process's own node is alive: without it, no worker can be reached or started."""
        return any(node.id == self._own_node for node in self.list_nodes())

    @cached_property
    def own_address(self) -> str:
        """The address of this machine within the cluster."""
        return next((node.address for node in self.list_nodes() if node.id == self._own_node), "")

    def has_other_machines(self) -> bool:
        """Whether some node is on another machine."""
        return len({node.address for node in self.list_nodes()} | {self.own_address}) > 1

    def count_cpus(self) -> int:
        """Count the CPUs of all nodes."""
        return int(sum(node.resources.get("CPU", 0.0) for node in self.list_nodes()))

    def claim(self, crew: _Claim) -> None:
        """Reserve a share of the places for a crew."""
        self._claims.append(crew)

    def count_places(self, crew: _Claim) -> int:
        """Count the workers that a crew may have; crews take turns, so that each gets some."""
        counts = dict.fromkeys(map(id, self._claims), 0)
        nodes = self.list_nodes()
        taken: dict[str, dict[str, float]] = {node.id: {} for node in nodes}
        growing = list(self._claims)
        while growing:
            for each in list(growing):
                need = _name_resources(each.resources)
                node = next((node for node in nodes if node.has_room(taken[node.id], need)), None)
                if node is None or counts[id(each)] >= (math.inf if each.most is None else each.most):
                    growing.remove(each)
                    continue
                counts[id(each)] += 1
                for key, value in need.items():
                    taken[node.id][key] = taken[node.id].get(key, 0.0) + value
        return counts[id(crew)]

    def make_actor(self, kind: type, resources: Mapping[str, float], concurrency: int | None = None) -> Any:
        """Start an actor on any node with room."""
        usual = {key: value for key, value in resources.items() if key in ("num_cpus", "num_gpus", "memory")}
        custom = {key: value for key, value in resources.items() if key not in usual}
        more: dict[str, Any] = {"max_concurrency": concurrency} if concurrency else {}
        return (
            self._ray.remote(kind)
            .options(**{"num_cpus": 0, **usual}, resources=custom, max_restarts=0, scheduling_strategy="SPREAD", **more)
            .remote()
        )

    def kill(self, actor: Any) -> None:
        """End an actor."""
        self._ray.kill(actor)

    async def has_left(self, actor: Any, node: str, error: BaseException) -> bool:
        """Whether a worker was lost because of its node or connection, not because of its work."""
        for _ in range(20):
            if not isinstance(error, self._ray.exceptions.ActorUnavailableError):
                break
            try:  # the connection broke first; the cluster will soon know why
                await asyncio.wait_for(actor.find_node.remote(), 30.0)
                return True
            except (self.lost_errors, asyncio.TimeoutError) as again:
                error = again
            await asyncio.sleep(0.5)
        if not isinstance(error, self._deaths) or "node has died" in str(error) or "node died" in str(error):
            return True
        for _ in range(10):
            if not any(each.id == node for each in self.list_nodes()):
                return True
            await asyncio.sleep(_NODE_DEATH_TIMEOUT / 10)
        return False


def _name_resources(resources: Mapping[str, float]) -> dict[str, float]:
    """Name the resources of an actor as nodes do."""
    names = {"num_cpus": "CPU", "num_gpus": "GPU"}
    return {names.get(key, key): value for key, value in resources.items() if value}


def _check_address(address: str, find_own_ip: Callable[[], str]) -> bool:
    """Check that a server listens there, because Ray itself would try for minutes and fill the terminal.

    Returns:
        Whether the cluster is only on loopback, so that Ray must not replace 127.0.0.1 by its public address.

    Raises:
        UsageError: It is not an address, or no server listens there.
    """
    if address in ("local", "auto"):
        return False
    if address.startswith("ray://"):
        raise UsageError(
            f"{address!r} is an address for Ray Client, which a run cannot use: start it on a machine of the cluster "
            "(ray job submit), with HOST:PORT or auto as the address"
        )
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise UsageError(
            f"{address!r} is not the address of a Ray cluster: use HOST:PORT, or auto for a cluster on this machine"
        )
    host = host.strip("[]")
    # Ray replaces the name of this machine by its public address.
    hosts = [find_own_ip(), host] if host in ("localhost", "127.0.0.1", "::1") else [host]
    for each in hosts:
        try:
            socket.create_connection((each, int(port)), _CONNECT_SECONDS).close()
            return each != hosts[0]
        except (OSError, OverflowError, UnicodeError) as error:
            problem = error
    raise UsageError(
        f"no Ray cluster could be reached at {address!r} ({problem}): start it, or name another with --ray-address "
        "or RAY_ADDRESS"
    )


@contextmanager
def _keep_to_loopback(constants: Any) -> Iterator[None]:
    """Make a cluster that is started within this context listen only on 127.0.0.1, as Ray does on macOS and Windows.

    On Linux, Ray replaces 127.0.0.1 by the public address, and anyone who reaches its ports can run code.
    """
    usual = constants.ENABLE_RAY_CLUSTER
    constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = usual


@contextmanager
def _same_signals() -> Iterator[None]:
    """Keep our signal handlers: Ray replaces the one for SIGTERM, which the run needs."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, handler)
