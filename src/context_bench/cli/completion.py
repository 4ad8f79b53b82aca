"""`context-bench completion bash|zsh|fish`: a script that completes commands, flags, choices, names and files.

The script contains all names, so completion is fast and does not start Python. The names come from each command's
parser, so every new flag is completed too.
"""

from __future__ import annotations

import argparse
import contextlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module

from context_bench.cli.commands import COMMANDS, find_module, run_parser
from context_bench.cli.flags import Parser, add_flags

_EXAMPLE = """\
examples:
  bash, in ~/.bashrc:
    eval "$(context-bench completion bash)"
  zsh, in ~/.zshrc after compinit:
    eval "$(context-bench completion zsh)"
  fish, once:
  context-bench completion fish > ~/.config/fish/completions/context-bench.fish
"""

_SUBCOMMANDS = {
    "datasets": {"show": "details of one dataset", "fetch": "its records, for offline use", "import": "own traffic"}
}
"""Second words that a command handles before its parser."""

_SAFE = re.compile(r"[\w.+/@-]+")
"""The shell expands offered words, so plugin names with special characters are left out."""

_REGISTERED = {
    "system": "system",
    "dataset": "dataset",
    "datasets": "dataset",
    "evaluator": "evaluator",
    "metric": "metric",
    "output": "reporter",
}
"""Flags and arguments that take a component's name, with the kind of this component in the registry."""


def main(arguments: Sequence[str]) -> int:
    parser = Parser(prog="context-bench completion", description=f"{_EXAMPLE}\n{COMMANDS['completion']}")
    parser.add_argument("shell", choices=tuple(WRITERS), help="your shell")
    add_flags(parser, "imports")
    options = parser.parse_args(arguments[1:])

    from context_bench.refs import import_all

    import_all(options.imports)
    print(WRITERS[options.shell](collect()), end="")
    return 0


def collect() -> dict[str, CommandSpec]:
    """Collect the possible words after each command; the empty name is a run."""
    run = _read_parser(run_parser())
    run.commands, run.texts = tuple(COMMANDS), {**run.texts, **COMMANDS}
    found = {"": run}
    for name in COMMANDS:
        parser = _find_parser(name)
        own = found[name] = _read_parser(parser)
        actions = {**_SUBCOMMANDS.get(name, {}), **_read_actions(parser)}
        own.commands, own.texts = tuple(actions), {**own.texts, **actions}
        for action in actions:
            found[f"{name} {action}"] = _read_parser(_find_parser(name, action))
    found["run"].flags, found["run"].texts = run.flags, run.texts  # flags of a run may follow the file
    return found


def _find_parser(*words: str) -> Parser:
    """Get the parser of a command, by running the command with --help."""
    found: list[Parser] = []
    before, Parser.on_help = Parser.on_help, found.append
    try:
        with contextlib.suppress(SystemExit):
            import_module(find_module(words[0])).main([*words, "--help"])
    finally:
        Parser.on_help = before
    return found[0]


def _read_actions(parser: Parser) -> dict[str, str]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return {each.dest: each.help or "" for each in action._choices_actions}
    return {}


def _read_parser(parser: Parser) -> CommandSpec:
    command = CommandSpec()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            continue
        if not action.option_strings:
            values = _read_values(action)
            words = (*command.arguments.words, *values.words)
            command.arguments = Offered(words, command.arguments.files or values.files)
        for flag in action.option_strings:
            command.flags[flag] = None if action.nargs in (0, "?") else _read_values(action)
            command.texts[flag] = parser._get_formatter()._expand_help(action)
    return command


def _read_values(action: argparse.Action) -> Offered:
    """Find the possible values of a flag from its choices, its name and its metavar."""
    shown = action.metavar if isinstance(action.metavar, str) else ""
    if action.choices is not None:
        return Offered(tuple(map(str, action.choices)))
    files = "folder" if shown == "DIR" else "file" if "FILE" in shown or shown == "SCRIPT" else ""
    if action.dest in _REGISTERED:
        from context_bench.registry import registry

        names = filter(_SAFE.fullmatch, registry.list(_REGISTERED[action.dest]))
        return Offered(tuple(names), "file" if shown == "REF" else "")
    if action.dest == "vendor":
        from context_bench.tap.vendors import VENDORS

        return Offered(VENDORS)
    return Offered(_WORDS.get(shown, ()), files)


_WORDS = {"RUN": ("last",), "local|FILE": ("local",), "SCRIPT": ("extract", "echo", "text:")}
"""Special words, by the metavar of the value."""


@dataclass(frozen=True)
class Offered:
    """Possible values of a flag or argument: words, and files or folders."""

    words: tuple[str, ...] = ()
    files: str = ""  # `file`, `folder` or nothing


@dataclass
class CommandSpec:
    """A command's flags (None for a flag without a value), arguments and subcommands."""

    flags: dict[str, Offered | None] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)  # descriptions of the flags and subcommands
    arguments: Offered = field(default_factory=Offered)
    commands: tuple[str, ...] = ()


Commands = Mapping[str, CommandSpec]

MAX_DESCRIPTION_CHARS = 70  # characters of a description


def _quote(text: str) -> str:
    """Quote a text as one word of a POSIX shell, or of fish."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _quote_posix(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _describe(text: str) -> str:
    return text if len(text) <= MAX_DESCRIPTION_CHARS else text[: MAX_DESCRIPTION_CHARS - 1] + "…"


def _group_by_values(commands: Commands) -> dict[Offered, list[str]]:
    places: dict[Offered, list[str]] = {}
    for name, command in commands.items():
        for flag, values in command.flags.items():
            if values is not None:
                places.setdefault(values, []).append(_quote_posix(f"{name} {flag}"))
    return places


_BASH = """\
# Completion of context-bench for bash: eval "$(context-bench completion bash)"
_context_bench() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} at="" words="" files="" flags="" item
    COMPREPLY=()
    if [[ $cur == "=" ]]; then
        cur=""
    elif [[ $prev == "=" ]]; then
        prev=${COMP_WORDS[COMP_CWORD - 2]}
    elif [[ $cur == ":" || $prev == ":" ]]; then
        return # what follows the name of a system or dataset is its own
    fi
    if ((COMP_CWORD > 1)); then
        case ${COMP_WORDS[1]} in @COMMANDS@) at=${COMP_WORDS[1]} ;; esac
    fi
    if ((COMP_CWORD > 2)); then
        case "$at ${COMP_WORDS[2]}" in @ACTIONS@) at="$at ${COMP_WORDS[2]}" ;; esac
    fi
    case "$at $prev" in
@VALUES@
    *)
        case $at in
@FLAGS@
        esac
        if [[ $cur == -* || -z $words$files ]]; then
            words=$flags files=""
        fi
        ;;
    esac
    while IFS= read -r item; do
        COMPREPLY+=("$item")
    done < <(
        compgen -W "$words" -- "$cur"
        case $files in file) compgen -f -- "$cur" ;; folder) compgen -d -- "$cur" ;; esac
    )
    if [[ -n $files ]]; then
        compopt -o filenames 2>/dev/null
    fi
}
complete -F _context_bench context-bench
"""


def write_bash(commands: Commands) -> str:
    values = [
        f"    {' | '.join(places)}) words={_quote_posix(' '.join(each.words))} files={_quote_posix(each.files)} ;;"
        for each, places in _group_by_values(commands).items()
    ]
    flags = []
    for name, command in commands.items():
        words = " ".join([*command.commands, *command.arguments.words])
        first = "" if name else "((COMP_CWORD == 1)) && "
        flags += [
            f"        {_quote_posix(name)})",
            f"            flags={_quote_posix(' '.join(command.flags))}",
            f"            files={_quote_posix(command.arguments.files)}",
            f"            {first}words={_quote_posix(words)}",
            "            ;;",
        ]
    return _fill(_BASH, commands, values, flags)


def _fill(script: str, commands: Commands, values: Iterable[str], flags: Iterable[str]) -> str:
    first, second = ([name for name in commands if name.count(" ") == spaces and name] for spaces in (0, 1))
    return (
        script.replace("@COMMANDS@", " | ".join(first))
        .replace("@ACTIONS@", " | ".join(map(_quote_posix, second)))
        .replace("@VALUES@", "\n".join(values))
        .replace("@FLAGS@", "\n".join(flags))
    )


_ZSH = """\
#compdef context-bench
# Completion of context-bench for zsh: eval "$(context-bench completion zsh)", after compinit
_context_bench() {
    local at="" files="" prev=${words[CURRENT-1]}
    local -a offered flags
    if [[ $PREFIX == --*=* ]]; then
        prev=${PREFIX%%=*}
        compset -P '*='
    fi
    if ((CURRENT > 2)); then
        case ${words[2]} in @COMMANDS@) at=${words[2]} ;; esac
    fi
    if ((CURRENT > 3)); then
        case "$at ${words[3]}" in @ACTIONS@) at="$at ${words[3]}" ;; esac
    fi
    case "$at $prev" in
@VALUES@
    *)
        case $at in
@FLAGS@
        esac
        if [[ $PREFIX == -* || -z "$offered$files" ]]; then
            offered=("${flags[@]}") files=""
        fi
        ;;
    esac
    if (($#offered)); then
        _describe context-bench offered
    fi
    case $files in file) _files ;; folder) _files -/ ;; esac
}
if [[ ${funcstack[1]} == _context_bench ]]; then
    _context_bench "$@"
else
    compdef _context_bench context-bench
fi
"""


def write_zsh(commands: Commands) -> str:
    values = [
        f"    {' | '.join(places)}) offered=({_zsh_items(each.words)}) files={_quote_posix(each.files)} ;;"
        for each, places in _group_by_values(commands).items()
    ]
    flags = []
    for name, command in commands.items():
        words = _zsh_items([*command.commands, *command.arguments.words], command.texts)
        first = "" if name else "((CURRENT == 2)) && "
        flags += [
            f"        {_quote_posix(name)})",
            f"            flags=({_zsh_items(command.flags, command.texts)})",
            f"            files={_quote_posix(command.arguments.files)}",
            f"            {first}offered=({words})",
            "            ;;",
        ]
    return _fill(_ZSH, commands, values, flags)


def _zsh_items(words: Iterable[str], texts: Mapping[str, str] | None = None) -> str:
    items = []
    for word in words:
        text = _describe((texts or {}).get(word, ""))
        items.append(_quote_posix(word.replace(":", "\\:") + (f":{text}" if text else "")))
    return " ".join(items)


_FISH = """\
# Completion of context-bench for fish: context-bench completion fish > ~/.config/fish/completions/context-bench.fish
function __context_bench_at
    set -l words (commandline -opc)[2..-1]
    set -l at ""
    if contains -- "$words[1]" @COMMANDS@
        set at $words[1]
    end
    if contains -- "$at $words[2]" @ACTIONS@
        set at "$at $words[2]"
    end
    test "$at" = "$argv[1]"
end
function __context_bench_first
    test (count (commandline -opc)) -eq 1
end
complete -c context-bench -e
complete -c context-bench -f
"""


def write_fish(commands: Commands) -> str:
    first, second = ([name for name in commands if name.count(" ") == spaces and name] for spaces in (0, 1))
    head = _FISH.replace("@COMMANDS@", " ".join(first)).replace("@ACTIONS@", " ".join(map(_quote, second)))
    lines = []
    for name, command in commands.items():
        where = f"complete -c context-bench -n {_quote(f'__context_bench_at {_quote(name)}')}"
        for flag, values in command.flags.items():
            form = f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}"
            what = "" if values is None else _fish_values(values)
            lines.append(f"{where} {form}{what} -d {_quote(_describe(command.texts.get(flag, '')))}")
        there = where if name else "complete -c context-bench -n __context_bench_first"
        lines += [
            f"{there} -a {_quote(each)} -d {_quote(_describe(command.texts.get(each, '')))}"
            for each in command.commands
        ]
        if command.arguments != Offered():
            lines.append(where + _fish_values(command.arguments).replace(" -r", "").replace(" -x", ""))
    return head + "\n".join(lines) + "\n"


def _fish_values(values: Offered) -> str:
    words = " ".join(values.words)
    if values.files == "folder":
        return f" -x -a {_quote(f'{words} (__fish_complete_directories)'.strip())}"
    offered = f" -a {_quote(words)}" if words else ""
    return f" -r -F{offered}" if values.files == "file" else f" -x{offered}"


WRITERS: dict[str, Callable[[Commands], str]] = {"bash": write_bash, "zsh": write_zsh, "fish": write_fish}
"""For each shell, the function that writes its script."""
