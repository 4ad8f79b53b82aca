"""Build the systems of a run from its options: proxies with or without a tap, compressors, readers, controls."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count, product, repeat, zip_longest
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from context_bench.compare.sweeps import name_setting
from context_bench.config import RunOptions
from context_bench.errors import UsageError, warn
from context_bench.http import Secret, find_key
from context_bench.http.secrets import check_url, merge_headers
from context_bench.processes.started_proxy import SCRATCH
from context_bench.systems import WithReader, rename_system
from context_bench.systems.adapt import build_systems
from context_bench.systems.chat import TAP_PLACEHOLDER, build_proxy
from context_bench.systems.reference import Passthrough
from context_bench.tap.address import free_port, is_open_to_others, parse_listen, port_of
from context_bench.text.masking import MASK, mask_command, mask_text
from context_bench.traits import find_parts, never_wins
from context_bench.wire.forms import get_form

if TYPE_CHECKING:
    from context_bench.tap.answering import Answerer
    from context_bench.tap.system import Launch

PROXY_WORKERS = 8


def build_system_list(options: RunOptions) -> list[Any]:
    """Build the proxies, then the other systems, then the controls, each in the given order."""
    for line in options.header:
        _split_header(line)  # refused even if no server would receive it
    _parse_extra_body(options.extra_body)
    if options.reader and not options.system:
        raise UsageError("--reader reads the context of a --system: add --system NAME")
    if options.start_dir and not options.start:
        raise UsageError(
            "--start-dir is the folder of a --start: add --start COMMAND (a --vendor runs in a temporary folder)"
        )
    if options.sweep and not options.start:
        raise UsageError("--sweep fills in a --start: add --start COMMAND. For a --system, write NAME:key=a|b")
    if options.wants_tap:
        return _build_tapped(options)
    for flag, text in (("--header", "".join(options.header)), ("--extra-body", options.extra_body or "")):
        if TAP_PLACEHOLDER in text:
            raise UsageError(f"{flag} contains {{tap}}, but this run has no tap: add --tap-forward or --tap-reply")
    if options.controls in ("standard", "all"):
        raise UsageError("--controls asks the model behind a tap: add --tap-forward, --tap-model or --tap-reply")
    if options.controls and not options.reader:
        raise UsageError(
            "--controls=matched asks a model: add --reader, or a tap (without a model, every run already judges cuts "
            "of the same size)"
        )
    names = _name_proxies(options.name, len(options.proxy))
    systems = [_build_server(url, options, name) for url, name in zip(options.proxy, names)]
    reader = _build_server(options.reader, options, None) if options.reader else None
    for text in options.system:
        built = build_systems(text, options.seed)
        systems.extend(rename_system(WithReader(each, reader), each.name) if reader else each for each in built)
    if options.controls:
        systems += _match_controls([each for each in systems if find_parts(each)], lambda _: reader)
    return systems


def _build_server(url: str, options: RunOptions, name: str | None, headers: Mapping[str, str] | None = None) -> Any:
    """Build a server with all request options; a --header overrides the entry of `headers` with the same name."""
    shared: dict[str, Any] = {
        "model": options.model,
        "name": name,
        "system_prompt": options.system_prompt,
        "timeout": options.timeout,
        "extra_body": _parse_extra_body(options.extra_body),
        "max_retries": options.max_retries,
        "temperature": options.temperature,
        "headers": merge_headers(headers or {}, parse_headers(options.header)),
        "max_rpm": options.max_rpm,
        "max_tpm": options.max_tpm,
        "max_connections": options.max_connections,
    }
    if options.max_tokens is not None:
        shared["max_tokens"] = options.max_tokens
    fallback = get_form(options.api).key_variable
    shared["api_key"] = find_key(check_url(url), variable=options.api_key_env, fallback=fallback)
    server = build_proxy(options.api, url, stream=options.stream, **shared)
    server.max_workers = PROXY_WORKERS
    return server


def _parse_extra_body(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        body = json.loads(text)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise UsageError(f"--extra-body must be a JSON object (got {mask_text(text)!r})")
    return body


def parse_headers(lines: Sequence[str]) -> dict[str, Secret]:
    """Parse each `--header` NAME:VALUE; raise UsageError for any other form."""
    headers = {}
    for name, value in map(_split_header, lines):
        if value == MASK:
            raise UsageError(f"--header {name}: {MASK} stands for a hidden value: write the real value")
        headers[name] = Secret(value)
    return headers


def _split_header(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon or not name.strip() or not value.strip():
        # Text without a colon may be just the secret, so it is not repeated.
        raise UsageError("a --header must be NAME:VALUE" + (f" (got the name {name!r} alone)" if colon else ""))
    return name.strip(), value.strip()


@dataclass(frozen=True)
class _Arm:
    """One proxy of the run: its address, its start command if any, and its name."""

    url: str  # its address
    launch: Launch | None  # its start command; None if it already runs
    name: str | None  # its name in the report; None gives host and port
    headers: Mapping[str, str] | None = None  # sent with every request to it
    known_as: str | None = None  # its identity in cache keys, if not its address


def _name_proxies(names: Sequence[str], proxies: int) -> list[str | None]:
    """Return a name for each proxy: the k-th --name belongs to the k-th proxy."""
    if len(names) > proxies:
        raise UsageError(f"{len(names)} --name for {proxies} --proxy: pass at most one --name for each --proxy")
    return [*names, *[None] * (proxies - len(names))]


def _build_tapped(options: RunOptions) -> list[Any]:
    """Build each proxy with its own tap, then the systems of this process and the controls, all for one model."""
    from context_bench.tap.system import CONTROLS, Control, Tapped

    answerer = _share_answerer(options)
    arms = plan_arms(options)
    host, ports = plan_ports(options, arms)
    systems: list[Any] = []
    for arm, port in zip(arms, ports):
        server = _build_server(arm.url, options, arm.name, arm.headers)
        more: dict[str, Any] = {"launch": arm.launch, "known_as": arm.known_as, "hosts": options.tap_host}
        systems.append(Tapped(server, answerer, host=host, port=port, **more))
    own = (each for text in options.system for each in build_systems(text, options.seed))
    systems += [rename_system(WithReader(each, _build_reader(options, answerer, "reader")), each.name) for each in own]
    matched: list[Any] = []
    if options.controls in ("matched", "all"):
        matched = _match_controls(systems, partial(_build_reader, options, answerer))
    if options.controls in ("standard", "all"):
        systems += [Control(name, _ask_directly(name, options, answerer)) for name in CONTROLS]
    systems += matched
    if not options.tap_forward:
        # Answers computed in this process take turns, so that no time is counted twice.
        for system in systems:
            system.local = True
    return systems


def plan_arms(options: RunOptions) -> list[_Arm]:
    """Plan the proxies: the k-th --start belongs to the k-th --proxy; the proxies of --vendor follow."""
    from context_bench.tap.system import Launch
    from context_bench.tap.vendors import recipe

    if not all(start.strip() for start in options.start):
        raise UsageError("a --start is empty: pass the command that starts the proxy")
    pairs = list(zip_longest(options.proxy, options.start))
    recipes = [recipe(vendor) for vendor in options.vendor]
    names = iter(_name_proxies(options.name, len(pairs) + len(recipes)))
    arms = []
    knobs = _parse_sweeps(options.sweep, options.start)
    for (url, start), name in zip(pairs, names):
        settings = _expand_start(start, url, knobs)
        for command, setting in settings:
            called = name_setting(name or _name_program(str(start)), setting)
            arms.append(_plan_arm(None, command, called, options.start_dir, named_by_program=True))
        if not settings:
            arms.append(_plan_arm(url, start, name, options.start_dir, named_by_program=not options.proxy))
    for vendor, name in zip(recipes, names):
        port = free_port()
        launch = Launch(vendor.command, port, vendor.env, vendor.describe(), SCRATCH)
        arms.append(_Arm(f"http://127.0.0.1:{port}", launch, name or vendor.name, vendor.headers, vendor.known_as))
    return arms


def _plan_arm(
    url: str | None, start: str | None, name: str | None, directory: str | None, *, named_by_program: bool
) -> _Arm:
    from context_bench.tap.system import Launch

    if start is None:
        return _Arm(str(url), None, name)
    program = _name_program(start)
    if url is None and "{port}" not in start:
        raise UsageError(
            f"--start {mask_command(start)!r} has no {{port}}: put it where the command takes the proxy's port"
        )
    url = url or f"http://127.0.0.1:{free_port()}"
    return _Arm(url, Launch(start, port_of(url), directory=directory), name or (program if named_by_program else None))


def _share_answerer(options: RunOptions) -> Any:
    from context_bench.tap.answering import Shared

    given = [choice for choice in (options.tap_forward, options.tap_model, options.tap_reply) if choice]
    if len(given) != 1:
        what = "choose one source of its answers" if given else "say where its answers come from"
        raise UsageError(f"the tap: {what}: --tap-forward URL, --tap-model local or --tap-reply SCRIPT")
    return Shared(choose_answerer(options.tap_forward, options.tap_model, options.tap_reply))


def plan_ports(options: RunOptions, arms: Sequence[_Arm]) -> tuple[str, Iterator[int]]:
    """Choose the ports of the taps: from the given port upwards, or free ones if every proxy is started here."""
    host, first = "127.0.0.1", 0
    if options.tap:
        host, first = parse_listen(options.tap)
        if is_open_to_others(host):
            warn(f"the tap listens on {host}: anyone who can reach it can use your key")
        if first + len(arms) > 65_536:
            raise UsageError(
                f"--tap {options.tap}: {len(arms)} taps need consecutive ports from there, and 65535 is the last port"
            )
    if first:
        return host, count(first)
    if any(arm.launch is None for arm in arms):
        raise UsageError("a --proxy that already runs must be configured with its tap: pass a port, as in --tap :9100")
    return host, repeat(0)


def _build_reader(options: RunOptions, answerer: Any, name: str) -> Any:
    """Build the reader for the systems of this process: the --reader, else the model behind the taps."""
    return _build_server(options.reader, options, None) if options.reader else _ask_directly(name, options, answerer)


def _match_controls(systems: Sequence[Any], build_reader: Callable[[str], Any]) -> list[Any]:
    """Build two controls for each system that may shorten a context: truncation and random deletion to equal size."""
    from context_bench.systems.matched_control import CUTS, MatchedControl, SavedTokens

    found = []
    for each in systems:
        compressor = next(iter(find_parts(each)), None)
        if not never_wins(each) and not isinstance(compressor, Passthrough):
            saved = SavedTokens(each.name)
            found += [MatchedControl(kind, each, saved, build_reader(f"{each.name} ({kind})")) for kind in CUTS]
    return found


def _ask_directly(name: str, options: RunOptions, answerer: Any) -> Any:
    """Build a system that asks the model through its own tap, without a proxy."""
    from context_bench.tap.system import Tapped

    port = free_port()
    return Tapped(_build_server(f"http://127.0.0.1:{port}", options, name), answerer, port=port, known_as=name)


def _name_program(command: str) -> str:
    try:
        words: Sequence[str] = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"--start {mask_command(command)!r} cannot be read as a command: {error}") from None
    names = [PurePath(word).name for word in words]
    scripts = [name for name in names[1:] if name.endswith((".py", ".js", ".sh"))]
    return mask_command((scripts or names or [command])[0])


_Knobs = dict[str, list[str]]  # the values of each knob, by the name of its placeholder

_FILLED_IN = ("port", "host", "tap")  # placeholders of a --start that the run fills in


def _parse_sweeps(texts: Sequence[str], starts: Sequence[str]) -> _Knobs:
    """Parse each `--sweep`; refuse one without a placeholder in any --start."""
    knobs: _Knobs = {}
    for text in texts:
        key, equals, values = text.partition("=")
        settings = [value for value in values.split("|") if value]
        if not equals or not key.isidentifier() or not settings:
            raise UsageError(f"--sweep must be KEY=VALUE|VALUE, such as level=low|high (got {text!r})")
        if key in _FILLED_IN:
            raise UsageError(f"--sweep {text!r}: {{{key}}} is reserved for the run: choose another name")
        if key in knobs:
            raise UsageError(f"--sweep gives {key!r} twice: put all values into one, as in {key}=a|b")
        if not any(f"{{{key}}}" in start for start in starts):
            raise UsageError(f"--sweep {text!r}: no --start contains {{{key}}}: write it in place of the value")
        if len(set(settings)) < len(settings):
            raise UsageError(f"--sweep {text!r} gives a value twice")
        knobs[key] = settings
    return knobs


def _expand_start(start: str | None, url: str | None, knobs: _Knobs) -> list[tuple[str, dict[str, str]]]:
    """Return a command for each combination of settings; an empty list if the command has no placeholder to fill."""
    used = {key: values for key, values in knobs.items() if start is not None and f"{{{key}}}" in start}
    if start is None or not used:
        return []
    if url is not None:
        raise UsageError(
            f"--start {mask_command(start)!r} is started once for each setting, but {url} is a single address: "
            "remove its --proxy, and put {port} into the command"
        )
    expanded = []
    for values in product(*used.values()):
        setting, command = dict(zip(used, values)), start
        for key, value in setting.items():
            command = command.replace(f"{{{key}}}", value)
        expanded.append((command, setting))
    return expanded


def choose_answerer(forward: str | None, model: str | None, reply: str | None) -> Answerer:
    if forward:
        from context_bench.tap.forward import Forward

        return Forward(forward)
    if model:
        from context_bench.local import LocalModel

        return LocalModel(model)
    from context_bench.tap.scripted import Scripted

    return Scripted.from_text(reply or "")
