"""Requests that leave from the nodes of a cluster.

The client stays in the driver, which applies retries, rate limits, the circuit breaker and the spending limit to each
attempt, so that they hold for the whole cluster. A sender only sends and measures times.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import monotonic
from typing import Any

from context_bench.errors import ConnectionFailed, ContextBenchError, warn
from context_bench.http.secrets import is_loopback
from context_bench.http.transport import Reply, Transport
from context_bench.ray.cluster import RayCluster
from context_bench.ray.ray_worker import Sender

_MAX_IN_FLIGHT = 1000  # requests in flight of one sender

_MAX_STARTS = 3  # failed starts of senders before the run continues without them

_MAX_LOSSES = 5  # senders that one request may lose before it fails


class _Place:
    """One sender, its node, and its load."""

    def __init__(self, actor: Any) -> None:
        self.actor = actor
        self.address = ""
        self.in_flight = 0


class RemoteTransport:
    """Sends requests by the workers of a cluster, with the interface of a Transport."""

    def __init__(self, cluster: RayCluster, count: int) -> None:
        self._cluster, self._count = cluster, count
        self._places: list[_Place] = []
        self._opening: asyncio.Future[None] | None = None
        self._local = Transport()
        self.runs = 0

    async def request(
        self,
        method: str,
        url: str,
        headers: Sequence[str] = (),
        body: bytes | None = None,
        timeout: float = 30.0,
        *,
        timed: bool = False,
    ) -> Reply:
        """Send one request; the way to the worker and back counts as our own waiting."""
        before = monotonic()
        reply: Any = await self._call(url, "request", method, url, tuple(headers), body, timeout, timed)
        now = monotonic()
        reply.queued = max(0.0, now - before - reply.seconds)
        reply.arrived = now
        return reply  # type: ignore[no-any-return]

    async def connect(self, url: str, timeout: float) -> None:
        """Check from a worker whether a server listens."""
        await self._call(url, "connect", url, timeout)

    async def _call(self, url: str, method: str, *arguments: Any) -> Any:
        for _ in range(_MAX_LOSSES):
            place = await self._choose(url)
            if place is None:  # only this machine can reach itself, and has no sender
                *first, timed = arguments
                return await (
                    self._local.request(*first, timed=timed) if method == "request" else self._local.connect(*arguments)
                )
            place.in_flight += 1
            try:
                answer = await getattr(place.actor, method).remote(*arguments)
            except self._cluster.lost_errors:
                if place in self._places:
                    self._places.remove(place)
                continue
            finally:
                place.in_flight -= 1
            if isinstance(answer, ContextBenchError):
                raise answer
            return answer
        raise ConnectionFailed(f"{_MAX_LOSSES} workers were lost while they sent this request")

    async def _choose(self, url: str) -> _Place | None:
        """Choose the sender with the least load; a loopback address must be sent from this machine."""
        if len(self._places) < self._count and (self._opening is None or self._opening.done()):
            self._opening = asyncio.ensure_future(self._open())
        if not self._places and self._opening is not None:
            await asyncio.shield(self._opening)
        places = self._places
        if is_loopback(url):
            places = [place for place in places if place.address == self._cluster.own_address]
        return min(places, key=lambda place: place.in_flight, default=None)

    async def _open(self) -> None:
        """Start the missing senders; if none can start, requests leave from this machine."""
        for _ in range(_MAX_STARTS):
            count = self._count - len(self._places)
            places = [_Place(self._cluster.make_actor(Sender, {}, _MAX_IN_FLIGHT)) for _ in range(count)]
            nodes = await asyncio.gather(*(place.actor.find_node.remote() for place in places), return_exceptions=True)
            addresses = {node.id: node.address for node in self._cluster.list_nodes()}
            for place, node in zip(places, nodes):
                if node in addresses:
                    place.address = addresses[node]
                    self._places.append(place)
            if self._places:
                return
        self._count = 0
        said = next((str(node).strip().splitlines()[-1] for node in nodes if isinstance(node, Exception)), "no node")
        warn(f"no worker could be started to send requests ({said}): this machine sends them")

    def end_senders(self) -> None:
        """End the senders, while the cluster is still there."""
        for place in self._places:
            self._cluster.kill(place.actor)
        self._places.clear()

    async def aclose(self) -> None:
        """Close the connections of this process."""
        await self._local.aclose()
