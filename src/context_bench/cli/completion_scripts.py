"""The scripts that complete in bash, zsh and fish. They hold all words, and run nothing but the shell."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

__all__ = ["WRITERS", "FlagCommand", "FlagValues"]


@dataclass(frozen=True)
class FlagValues:
    """Possible values of a flag or argument: words, and files or folders."""

    words: tuple[str, ...] = ()
    files: str = ""
    """`file`, `folder` or nothing."""


@dataclass
class FlagCommand:
    """A command's flags (None takes no value), arguments and subcommands."""

    flags: dict[str, FlagValues | None] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    """Descriptions of the flags and subcommands."""
    arguments: FlagValues = field(default_factory=FlagValues)
    commands: tuple[str, ...] = ()


Commands = Mapping[str, FlagCommand]

_LONGEST = 70
"""Characters of a description."""


def _quote(text: str) -> str:
    """Quote a text as one word of a POSIX shell, or of fish."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _quote_posix(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _describe(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _group_by_values(commands: Commands) -> dict[FlagValues, list[str]]:
    """Group the places that offer the same values, each as `command flag`."""
    places: dict[FlagValues, list[str]] = {}
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
    """Write the script for bash."""
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
    """Write the script for zsh."""
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
    """Write the script for fish."""
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
        if command.arguments != FlagValues():
            lines.append(where + _fish_values(command.arguments).replace(" -r", "").replace(" -x", ""))
    return head + "\n".join(lines) + "\n"


def _fish_values(values: FlagValues) -> str:
    words = " ".join(values.words)
    if values.files == "folder":
        return f" -x -a {_quote(f'{words} (__fish_complete_directories)'.strip())}"
    offered = f" -a {_quote(words)}" if words else ""
    return f" -r -F{offered}" if values.files == "file" else f" -x{offered}"


WRITERS: dict[str, Callable[[Commands], str]] = {"bash": write_bash, "zsh": write_zsh, "fish": write_fish}
"""The writer of each script, by the shell."""
