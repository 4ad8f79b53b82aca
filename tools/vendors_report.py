"""Write the tables of real proxies in README.md and docs/vendors.md: python tools/vendors_report.py [--record]

Both come from the run that is recorded in docs/vendors.json, so that they agree. With --record (`make vendors-report`)
the run is made again first, by the commands that the pages show: no key, no network, about five minutes.
"""

from __future__ import annotations

import json
import os
import platform
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RECORD = ROOT / "docs" / "vendors.json"
PROXIES = ("kompact", "headroom")
ROWS = 200
"""Requests of each kind: at least 149 can show that nothing above 2% is lost."""
DATASETS = {
    "json-logs:length=8000,kind=json": "JSON",
    "json-logs:length=8000,kind=logs": "logs",
    "json-logs:length=8000,kind=code": "source code",
    "needle:length=4000": "prose",
}
"""What is sent, and what the README calls it."""
NUMBERS = (
    *("num_examples", "num_errors", "sent_tokens", "upstream_tokens", "counted_tokens_saved", "claimed_tokens_saved"),
    *("prompt_savings", "untouched_share", "proxy_overhead_median", "evidence_rows", "evidence_survival"),
    *("evidence_verbatim", "evidence_recoverable", "evidence_lost"),
)
INTERVALS = ("prompt_savings", "evidence_survival")


def write_command(dataset: str) -> str:
    """Write the command that measures one kind of text."""
    vendors = " ".join(f"--vendor {name}" for name in PROXIES)
    return f"context-bench {vendors} --tap-reply extract --max-workers 1 --dataset {dataset},n={ROWS}"


def record() -> None:
    """Run the commands, and keep results only."""
    runs, about = [], {}
    for dataset in DATASETS:
        with tempfile.TemporaryDirectory() as folder:
            words = [*shlex.split(write_command(dataset))[1:], "--out", "result.json", "--quiet"]
            vendors = {"CONTEXT_BENCH_VENDORS": str(ROOT / ".vendors")}
            command = [sys.executable, "-m", "context_bench", *words]
            subprocess.run(command, cwd=folder, env={**os.environ, **vendors}, check=True)
            result = json.loads(Path(folder, "result.json").read_text(encoding="utf-8"))
        about = result["config"]
        runs.append({"dataset": dataset, "command": write_command(dataset), "systems": dict(_keep(result))})
    document = {
        "date": datetime.now(timezone.utc).date().isoformat(),
        "context_bench": about["version"],
        "python": about["python"],
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "tokenizer": about["tokenizer"],
        "proxies": {name: about["reports"][name]["proxy"] for name in PROXIES},
        "runs": runs,
    }
    RECORD.write_text(json.dumps(document, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def _keep(result: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name in PROXIES:
        values, intervals = result["summary"][name], result["intervals"][name]
        kept = {key: values[key] for key in NUMBERS}
        yield name, {**kept, "intervals": {key: [intervals[key]["low"], intervals[key]["high"]] for key in INTERVALS}}


def read_record() -> dict[str, Any]:
    """Read what was recorded."""
    document: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8"))
    return document


# --- the pages


def describe_run(document: dict[str, Any]) -> str:
    """Say when, with what and on what the run was made."""
    proxies = " and ".join(f"{each['package']} {each['version']}" for each in document["proxies"].values())
    rows = document["runs"][0]["systems"][PROXIES[0]]["num_examples"]
    return (
        f"Recorded on {document['date']} with {proxies}, by context-bench {document['context_bench']} on Python "
        f"{document['python']} ({document['machine']}): {rows:.0f} requests of each kind. [low, high]: 95% interval."
    )


def make_short_table(document: dict[str, Any]) -> str:
    """Make the table of the README: what each proxy claims, what was counted, and what is left of the evidence."""
    lines = [
        "| what was sent | proxy | tokens saved, its own claim | tokens saved, counted | claim is off by "
        "| evidence left |",
        "|---|---|--:|--:|--:|--:|",
    ]
    for run in document["runs"]:
        for name, values in run["systems"].items():
            claim, saved = values["claimed_tokens_saved"], values["counted_tokens_saved"]
            proxy = document["proxies"][name]
            cells = [
                f"{DATASETS[run['dataset']]}, {values['sent_tokens']:,.0f} tokens",
                f"{proxy['package']} {proxy['version']}",
                *(f"{claim:,.0f}", f"{saved:,.0f}", f"{claim / saved - 1:+.0%}" if saved else "–"),
                _with_interval(values, "evidence_survival"),
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", describe_run(document)])


def make_long_table(document: dict[str, Any]) -> str:
    """Make the table of docs/vendors.md."""
    lines = [
        "| dataset | proxy | sent | reached the model | tokens saved | its claim | saved | untouched "
        "| evidence survived | verbatim | recoverable | lost | overhead p50 |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for run in document["runs"]:
        for place, (name, values) in enumerate(run["systems"].items()):
            tokens = ("sent_tokens", "upstream_tokens", "counted_tokens_saved", "claimed_tokens_saved")
            states = ("evidence_verbatim", "evidence_recoverable", "evidence_lost")
            cells = [
                "" if place else f"`{run['dataset']}`",
                name,
                *(f"{values[key]:,.0f}" for key in tokens),
                _with_interval(values, "prompt_savings"),
                f"{values['untouched_share']:.0%}",
                _with_interval(values, "evidence_survival"),
                *(f"{values[key]:.1%}" for key in states),
                f"{values['proxy_overhead_median'] * 1000:.0f} ms",
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", describe_run(document)])


def _with_interval(values: dict[str, Any], key: str) -> str:
    low, high = values["intervals"][key]
    return f"{values[key]:.1%} [{low * 100:.1f}, {high * 100:.1f}]"


PAGES = {ROOT / "README.md": make_short_table, ROOT / "docs" / "vendors.md": make_long_table}
START, END = "<!-- vendors:start -->\n", "\n<!-- vendors:end -->"


def main(arguments: Sequence[str]) -> int:
    """Write the tables into their pages."""
    if "--record" in arguments:
        record()
    for path, make_table in PAGES.items():
        before, rest = path.read_text(encoding="utf-8").split(START)
        _, after = rest.split(END)
        path.write_text(f"{before}{START}{make_table(read_record())}{END}{after}", encoding="utf-8")
        print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
