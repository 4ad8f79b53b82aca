"""From flags to proxies with a tap behind them, and to the controls that ask the model without a proxy."""

from __future__ import annotations

import argparse
import shlex
import warnings
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import PurePath
from typing import Any

from context_bench.cli.answerers import choose_answerer
from context_bench.errors import UsageError
from context_bench.tap.address import free_port, is_open_to_others, parse_listen, port_of
from context_bench.text.masking import mask_command

__all__ = ["build_tapped", "proxy_names", "wants_tap"]

BuildServer = Callable[..., Any]

_MODES = ("tap_forward", "tap_model", "tap_reply")


def wants_tap(options: argparse.Namespace) -> bool:
    """Whether any flag speaks of a tap."""
    return any(getattr(options, name, None) for name in ("tap", "start", "vendor", *_MODES))


def proxy_names(options: argparse.Namespace, proxies: int) -> list[str | None]:
    """The k-th --name is for the k-th proxy."""
    if len(options.name) > proxies:
        raise UsageError(f"{len(options.name)} --name for {proxies} --proxy: each names one proxy")
    return [*options.name, *[None] * (proxies - len(options.name))]


def build_tapped(options: argparse.Namespace, build_server: BuildServer) -> list[Any]:
    """Each proxy with a tap of its own behind it (those with a URL, those that are started, the vendors' own), then the
    systems of this process and the controls, all answered by the same model."""
    from context_bench.tap.system import Launch, Tapped
    from context_bench.tap.vendors import recipe

    if not all(start.strip() for start in options.start):
        raise UsageError("a --start is empty: give the command that starts the proxy")
    answerer = _answerer(options)
    starts = [*options.start, *[None] * (len(options.proxy) - len(options.start))]
    urls = [*options.proxy, *[None] * (len(options.start) - len(options.proxy))]
    recipes = [recipe(name) for name in options.vendor]
    names = proxy_names(options, len(urls) + len(recipes))
    host, ports = _tap_ports(options, fixed=any(url and not start for url, start in zip(urls, starts)))
    systems = []
    for url, start, name in zip(urls, starts, names):
        if start and not url and _program(start) and "{port}" not in start:
            raise UsageError(f"--start {mask_command(start)!r} has no {{port}}: say there where the proxy listens")
        url = url or f"http://127.0.0.1:{free_port()}"
        server = build_server(url, options, name or (_program(start) if start and not options.proxy else None))
        launch = Launch(start, port_of(url)) if start else None
        systems.append(Tapped(server, answerer, host=host, port=next(ports), launch=launch, hosts=options.tap_host))
    for vendor, name in zip(recipes, names[len(urls) :]):
        port = free_port()
        server = build_server(f"http://127.0.0.1:{port}", options, name or vendor.name, vendor.headers)
        launch = Launch(vendor.command, port, vendor.env, vendor.describe())
        more = {"launch": launch, "known_as": vendor.known_as, "hosts": options.tap_host}
        systems.append(Tapped(server, answerer, host=host, port=next(ports), **more))
    systems += _read_systems(options, answerer, build_server)
    if options.controls:
        systems += _controls(options, answerer, build_server)
    if not options.tap_forward:
        # Answers that are made here take turns, so that the time of one is not counted as another's.
        for system in systems:
            system.local = True
    return systems


def _answerer(options: argparse.Namespace) -> Any:
    """Who answers behind every tap of the run: one, opened once."""
    from context_bench.tap.answering import Shared

    given = [name for name in _MODES if getattr(options, name)]
    if len(given) != 1:
        what = "say who answers behind it" if not given else "only one can answer behind it"
        raise UsageError(f"the tap: {what}: --tap-forward URL, --tap-model local or --tap-reply SCRIPT")
    return Shared(choose_answerer(options.tap_forward, options.tap_model, options.tap_reply))


def _tap_ports(options: argparse.Namespace, *, fixed: bool) -> tuple[str, Any]:
    """Where the taps listen: from the given port on, or at any free one for proxies that can be told."""
    if options.tap:
        host, port = parse_listen(options.tap)
        if is_open_to_others(host):
            warnings.warn(f"the tap listens on {host}: anybody who can reach it can use your key", stacklevel=2)
        taps = max(len(options.proxy), len(options.start)) + len(options.vendor)
        if port + taps > 65_536:
            raise UsageError(f"--tap {options.tap}: {taps} taps need as many ports from there, and 65535 is the last")
        if port:
            return host, count(port)
        if not fixed:
            return host, (0 for _ in count())
    if fixed:
        raise UsageError("a --proxy that is not started here must know its tap: give a port, as in --tap :9100")
    return "127.0.0.1", (0 for _ in count())


def _read_systems(options: argparse.Namespace, answerer: Any, build_server: BuildServer) -> list[Any]:
    """The systems of this process, read by whoever answers for the proxies, or by a reader of their own."""
    from context_bench.systems import WithReader, named
    from context_bench.systems.load import build_systems

    systems = []
    for each in (each for text in options.system for each in build_systems(text, options.seed)):
        if options.reader:
            reader = build_server(options.reader, options, None)
        else:
            reader = _asked_directly("reader", options, answerer, build_server)
        systems.append(named(WithReader(each, reader), each.name))
    return systems


def _asked_directly(name: str, options: argparse.Namespace, answerer: Any, build_server: BuildServer) -> Any:
    """The model behind a tap of its own, with no proxy in between."""
    from context_bench.tap.system import Tapped

    port = free_port()
    return Tapped(build_server(f"http://127.0.0.1:{port}", options, name), answerer, port=port, known_as=name)


def _controls(options: argparse.Namespace, answerer: Any, build_server: BuildServer) -> list[Any]:
    """The model itself, asked without a proxy."""
    from context_bench.tap.controls import CONTROLS, Control

    return [Control(name, _asked_directly(name, options, answerer, build_server)) for name in CONTROLS]


def _program(command: str) -> str:
    """What a proxy is called that has no name: its program."""
    try:
        words: Sequence[str] = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"--start {mask_command(command)!r} cannot be read as a command: {error}") from None
    names = [PurePath(word).name for word in words]
    scripts = [name for name in names[1:] if name.endswith((".py", ".js", ".sh"))]
    return mask_command((scripts or names or [command])[0])
