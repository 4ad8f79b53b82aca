"""From options to proxies with a tap behind them, and to the controls that ask the model without a proxy."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, repeat, zip_longest
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from context_bench.cli.answerers import choose_answerer
from context_bench.cli.options import RunOptions
from context_bench.cli.start_settings import expand_start, parse_sweeps
from context_bench.compare.sweeps import name_setting
from context_bench.errors import UsageError
from context_bench.processes.started_proxy import SCRATCH
from context_bench.tap.address import free_port, is_open_to_others, parse_listen, port_of
from context_bench.text.masking import mask_command

if TYPE_CHECKING:
    from context_bench.tap.system import Launch

__all__ = ["build_tapped", "name_proxies"]

BuildServer = Callable[..., Any]


@dataclass(frozen=True)
class Arm:
    """One proxy of the run: where it listens, how it is started if it is, and what it is called.

    Attributes:
        url: Where it is asked.
        launch: How it is started; None for one that runs already.
        name: Its name in the report; None takes host and port.
        headers: Sent with every request to it.
        known_as: What it is in a cache key, where that is not its address.
    """

    url: str
    launch: Launch | None
    name: str | None
    headers: Mapping[str, str] | None = None
    known_as: str | None = None


def name_proxies(names: Sequence[str], proxies: int) -> list[str | None]:
    """Return a name for each proxy: the k-th --name is for the k-th of them."""
    if len(names) > proxies:
        raise UsageError(f"{len(names)} --name for {proxies} --proxy: each names one proxy")
    return [*names, *[None] * (proxies - len(names))]


def build_tapped(options: RunOptions, build_server: BuildServer) -> list[Any]:
    """Build each proxy with a tap of its own behind it, then the systems of this process, then the controls.

    All of them are answered by the same model.
    """
    from context_bench.tap.system import Tapped

    answerer = _share_answerer(options)
    arms = _plan_arms(options)
    host, ports = _plan_ports(options, arms)
    systems: list[Any] = []
    for arm, port in zip(arms, ports):
        server = build_server(arm.url, options, arm.name, arm.headers)
        more: dict[str, Any] = {"launch": arm.launch, "known_as": arm.known_as, "hosts": options.tap_host}
        systems.append(Tapped(server, answerer, host=host, port=port, **more))
    systems += _read_systems(options, answerer, build_server)
    if options.controls:
        systems += _build_controls(options, answerer, build_server)
    if not options.tap_forward:
        # Answers that are made here take turns, so that the time of one is not counted as another's.
        for system in systems:
            system.local = True
    return systems


def _plan_arms(options: RunOptions) -> list[Arm]:
    """Plan the proxies: the k-th --start goes with the k-th --proxy, then come those of --vendor."""
    from context_bench.tap.system import Launch
    from context_bench.tap.vendors import recipe

    if not all(start.strip() for start in options.start):
        raise UsageError("a --start is empty: give the command that starts the proxy")
    pairs = list(zip_longest(options.proxy, options.start))
    recipes = [recipe(vendor) for vendor in options.vendor]
    names = iter(name_proxies(options.name, len(pairs) + len(recipes)))
    arms = []
    knobs = parse_sweeps(options.sweep, options.start)
    for (url, start), name in zip(pairs, names):
        settings = expand_start(start, url, knobs)
        for command, setting in settings:
            called = name_setting(name or _name_program(str(start)), setting)
            arms.append(_plan_arm(None, command, called, options.start_dir, named_by_program=True))
        if not settings:
            arms.append(_plan_arm(url, start, name, options.start_dir, named_by_program=not options.proxy))
    for vendor, name in zip(recipes, names):
        port = free_port()
        launch = Launch(vendor.command, port, vendor.env, vendor.describe(), SCRATCH)
        arms.append(Arm(f"http://127.0.0.1:{port}", launch, name or vendor.name, vendor.headers, vendor.known_as))
    return arms


def _plan_arm(
    url: str | None, start: str | None, name: str | None, directory: str | None, *, named_by_program: bool
) -> Arm:
    """Plan a proxy with a URL, with a command that starts it, or with both."""
    from context_bench.tap.system import Launch

    if start is None:
        return Arm(str(url), None, name)
    program = _name_program(start)
    if url is None and "{port}" not in start:
        raise UsageError(f"--start {mask_command(start)!r} has no {{port}}: put it where the proxy takes its port")
    url = url or f"http://127.0.0.1:{free_port()}"
    return Arm(url, Launch(start, port_of(url), directory=directory), name or (program if named_by_program else None))


def _share_answerer(options: RunOptions) -> Any:
    """Choose who answers behind every tap of the run: one, opened once."""
    from context_bench.tap.answering import Shared

    given = [choice for choice in (options.tap_forward, options.tap_model, options.tap_reply) if choice]
    if len(given) != 1:
        what = "only one can answer behind it" if given else "say who answers behind it"
        raise UsageError(f"the tap: {what}: --tap-forward URL, --tap-model local or --tap-reply SCRIPT")
    return Shared(choose_answerer(options.tap_forward, options.tap_model, options.tap_reply))


def _plan_ports(options: RunOptions, arms: Sequence[Arm]) -> tuple[str, Iterator[int]]:
    """Choose where the taps listen: from the given port on, or at any free one for proxies that can be told."""
    host, first = "127.0.0.1", 0
    if options.tap:
        host, first = parse_listen(options.tap)
        if is_open_to_others(host):
            warnings.warn(f"the tap listens on {host}: anybody who can reach it can use your key", stacklevel=2)
        if first + len(arms) > 65_536:
            raise UsageError(
                f"--tap {options.tap}: {len(arms)} taps need as many ports from there on, and 65535 is the last"
            )
    if first:
        return host, count(first)
    if any(arm.launch is None for arm in arms):
        raise UsageError("a --proxy that is not started here must know its tap: give a port, as in --tap :9100")
    return host, repeat(0)


def _read_systems(options: RunOptions, answerer: Any, build_server: BuildServer) -> list[Any]:
    """Build the systems of this process, read by whoever answers for the proxies, or by a reader of their own."""
    from context_bench.systems import WithReader, rename_system
    from context_bench.systems.adapt import build_systems

    systems = []
    for each in (each for text in options.system for each in build_systems(text, options.seed)):
        if options.reader:
            reader = build_server(options.reader, options, None)
        else:
            reader = _ask_directly("reader", options, answerer, build_server)
        systems.append(rename_system(WithReader(each, reader), each.name))
    return systems


def _ask_directly(name: str, options: RunOptions, answerer: Any, build_server: BuildServer) -> Any:
    """Build a system that is the model behind a tap of its own, with no proxy in between."""
    from context_bench.tap.system import Tapped

    port = free_port()
    return Tapped(build_server(f"http://127.0.0.1:{port}", options, name), answerer, port=port, known_as=name)


def _build_controls(options: RunOptions, answerer: Any, build_server: BuildServer) -> list[Any]:
    """Build the controls: the model itself, asked without a proxy."""
    from context_bench.tap.system import CONTROLS, Control

    return [Control(name, _ask_directly(name, options, answerer, build_server)) for name in CONTROLS]


def _name_program(command: str) -> str:
    """Return what a proxy without a name is called: its program."""
    try:
        words: Sequence[str] = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"--start {mask_command(command)!r} cannot be read as a command: {error}") from None
    names = [PurePath(word).name for word in words]
    scripts = [name for name in names[1:] if name.endswith((".py", ".js", ".sh"))]
    return mask_command((scripts or names or [command])[0])
