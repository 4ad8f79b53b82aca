"""Write docs/options.md from the declaration of options: python tools/options_page.py"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from context_bench.cli.commands import RUN_GROUPS
from context_bench.config import EvaluateOptions, RecordedOptions, RunOptions
from context_bench.memory.options import MEMORY_GROUPS, MemoryOptions, MemoryParameters
from context_bench.options import SWITCH, Option, Options

PAGE = Path(__file__).parent.parent / "docs" / "options.md"

_HEAD = """\
# Options

This page is generated from the declarations of the options. You can set an option in four ways, in
this order of precedence:

1. A flag: `--max-workers 16`.
2. A [run file](command-line.md): the flag without its dashes is the key, as in `max-workers = 16`.
3. An environment variable: `CONTEXT_BENCH_MAX_WORKERS=16`. A switch takes `1` or `0`, `true` or
   `false`. A repeatable option takes one value per line. An empty variable counts as not set.
4. The default, given in the last column.

Values of a repeatable flag are added to those of the run file. A variable is read only if neither a
flag nor the run file sets its option. Environment variables apply to the command line only: Python
reads only `CONTEXT_BENCH_DATA`. `CONTEXT_BENCH_CACHE_DIR` also sets the store of `runs`, `report`
and the other commands.

A run records the flags that would repeat it in `result.config["command"]`, including those that
came from a file or a variable. `result.config["origins"]` says which ones come from a run file or
from the environment. Options with ✓ have their own key in `result.config`, and an attribute of
`result.settings`.

In Python, options are the parameters of `evaluate()` and `evaluate_memory()`. Some have another
name there, or take an object instead of a text; see [the reference](api/index.md).
"""


def write_page() -> str:
    """Return the text of the page."""
    lines = [_HEAD, "## A run", "", *_list_tables(RunOptions, RUN_GROUPS, EvaluateOptions)]
    lines += ["## `context-bench memory`", "", *_list_tables(MemoryOptions, MEMORY_GROUPS, MemoryParameters)]
    return "\n".join(lines).rstrip() + "\n"


def _list_tables(options: type[Options], groups: Mapping[str, Sequence[str]], own: type[Options]) -> Iterator[str]:
    declared, python = options.declared(), {*own.declared(), *EvaluateOptions.declared()}
    for title, names in groups.items():
        yield from (f"### {title[0].upper()}{title[1:]}", "")
        yield "| flag | environment variable | Python | recorded | what it does |"
        yield "|---|---|---|---|---|"
        for name in names:
            option = declared[name]
            parameter = f"`{name}`" if name in python else ""
            recorded = "✓" if name in RecordedOptions.declared() else ""
            text = option.text.replace("%%", "%").replace("|", "\\|").replace("<", "&lt;")
            yield f"| {_show_flags(option)} | `{option.variable}` | {parameter} | {recorded} | {text} |"
        yield ""


def _show_flags(option: Option) -> str:
    shown = option.metavar or "\\|".join(option.choices)
    value = "" if option.kind is SWITCH else " " + shown.replace("|", "\\|").replace("\\\\|", "\\|")
    value = f"[={value.strip()}]" if option.bare else value
    return f"`{', '.join(option.flags)}{value}`"


if __name__ == "__main__":
    PAGE.write_text(write_page(), encoding="utf-8")
