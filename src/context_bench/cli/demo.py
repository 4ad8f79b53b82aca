"""`context-bench demo`: compare seven systems on generated data, without an API key or network."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from context_bench.cli.commands import COMMANDS
from context_bench.cli.flags import Parser, add_flags

SYSTEMS = (
    "passthrough",
    "closed-book",
    "oracle",
    "minify",
    "truncate:ratio=0.5",
    "random-drop:ratio=0.5",
    "bm25:ratio=0.3",
)
DATASETS = ("needle:length=4000,n=80", "kv:length=4000,n=80", "json-logs:length=4000,n=80")

_ABOUT = """\
Each system gets 240 contexts of about 4,000 tokens with one needed fact each.
score: share of facts kept.  saved: share of tokens removed.  cost of pass:
tokens for each fact kept.  Pareto front: no system is better and cheaper.
"""

_NEXT = """
Measure your own compressor, written in Python:
  context-bench --system my_file.py:my_function --system bm25:ratio=0.3 \\
      --dataset json-logs:n=200
Measure your own proxy (with your key in OPENAI_API_KEY):
  context-bench --proxy http://localhost:7878 --model gpt-4o-mini \\
      --dataset needle:length=4000,n=200
Open the page of this result, which works offline:
  {page}"""


def main(arguments: Sequence[str]) -> int:
    parser = Parser(prog="context-bench demo", description=COMMANDS["demo"])
    parser.add_argument(
        "--out",
        default=".context-bench/demo.json",
        metavar="FILE",
        help="file that the result is saved in (default: %(default)s)",
    )
    add_flags(parser, "wide")
    options = parser.parse_args(arguments[1:])

    from context_bench.cli.output import open_destination, table_width, wants_color, write_report
    from context_bench.datasets.open import Choices, open_datasets
    from context_bench.errors import UsageError
    from context_bench.metrics import default_metrics
    from context_bench.output.files import build_reporter
    from context_bench.runner import evaluate
    from context_bench.systems.adapt import build_systems

    systems = [system for text in SYSTEMS for system in build_systems(text, seed=0)]
    metrics = default_metrics(datasets=len(DATASETS), systems=len(systems))
    saved = Path(options.out)
    try:
        saved.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write to --out {saved}: {error.strerror or error}") from error
    page = saved.with_suffix(".html") if saved.suffix != ".html" else saved.with_suffix(".report.html")
    with (
        TemporaryDirectory() as store,  # the page reads contexts from the store
        open_destination(options.out, quiet=True) as write,
        open_destination(str(page), quiet=True) as write_page,
    ):
        print(_ABOUT, file=sys.stderr)
        result = evaluate(systems, open_datasets(DATASETS, Choices(seed=0)), metrics=metrics, cache_dir=store)
        result.config |= {"command": list(arguments), "seed": 0}
        write_report(write_page, build_reporter("html", None, store), "html", result)
        result.config.pop("run", None)  # its store is temporary
        write(result.to_json())
    width = table_width(wide=options.wide)
    sys.stdout.write(build_reporter("table", width, color=wants_color(), wide=options.wide).render(result))
    sys.stdout.flush()
    print(_NEXT.format(page=page), file=sys.stderr)
    return 0
