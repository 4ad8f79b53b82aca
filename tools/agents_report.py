"""Write the table of docs/agents.md: python tools/agents_report.py [--record]

It comes from the run that is recorded in docs/agents.json. With --record (`make agents-report`) the run is made again
first, by the commands that the page shows: no key, no network, about ten minutes.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RECORD, PAGE = ROOT / "docs" / "agents.json", ROOT / "docs" / "agents.md"
DATASET = "agent-trace:length=8000,turns=16,n=150"
APIS = ("openai", "anthropic")
AGES = {"1 to 5": range(1, 6), "6 to 10": range(6, 11), "11 to 15": range(11, 16)}
"""Ages of the evidence, in turns."""
LITELLM = (
    "env LITELLM_LOCAL_MODEL_COST_MAP=True LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY=true TAP={tap} "
    "TAP_BASE={tap}/v1 .vendors/litellm/bin/litellm --host {host} --port {port} --config tools/vendors/litellm.yaml"
)
POLICIES = ("clear-tool-results:last=3", "keep-last:turns=8", "dedupe-reads", "truncate-tool-results:tokens=500")
SYSTEMS = (*POLICIES, "kompact", "headroom", "litellm")
NUMBERS = ("num_examples", "num_errors", "sent_tokens", "upstream_tokens", "evidence_rows")
INTERVALS = ("prompt_savings", "evidence_survival")


def write_command(api: str) -> str:
    """Write the command that measures one API's form."""
    policies = " ".join(f"--system {name}" for name in POLICIES)
    return (
        f'context-bench --start "{LITELLM}" --name litellm --vendor kompact --vendor headroom {policies} '
        f"--tap-reply extract --max-workers 1 --api {api} --dataset {DATASET}"
    )


def record() -> None:
    """Run the commands in the checkout, and keep results only."""
    runs: dict[str, Any] = {}
    config: dict[str, Any] = {}
    for api in APIS:
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder, "result.json")
            words = [*shlex.split(write_command(api))[1:], "--no-store", "--out", str(out), "--quiet"]
            vendors = {"CONTEXT_BENCH_VENDORS": str(ROOT / ".vendors")}
            command = [sys.executable, "-m", "context_bench", *words]
            subprocess.run(command, cwd=ROOT, env={**os.environ, **vendors}, check=True)
            result = json.loads(out.read_text(encoding="utf-8"))
        runs[api] = {name: _keep(result, name) for name in SYSTEMS}
        config = result["config"]
    proxies = {name: config["reports"][name]["proxy"] for name in ("kompact", "headroom")}
    versions = {name: each["version"] for name, each in proxies.items()} | {"litellm": _read_litellm_version()}
    document = {
        "date": datetime.now(timezone.utc).date().isoformat(),
        "context_bench": config["version"],
        "python": config["python"],
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "versions": versions,
        "dataset": DATASET,
        "runs": runs,
    }
    RECORD.write_text(json.dumps(document, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def _keep(result: dict[str, Any], name: str) -> dict[str, Any]:
    values, intervals = result["summary"][name], result["intervals"][name]
    kept: dict[str, Any] = {key: values[key] for key in (*NUMBERS, *INTERVALS)}
    kept["intervals"] = {key: [intervals[key]["low"], intervals[key]["high"]] for key in INTERVALS}
    survived: dict[str, list[float]] = {label: [] for label in AGES}
    for row in result["rows"]:
        if row["system"] == name:
            age = int(re.findall(r"-a(\d+)-of", row["example_id"])[0])
            (label,) = (label for label, ages in AGES.items() if age in ages)
            survived[label].append(row["scores"]["evidence_survived"])
    return {**kept, "by_age": {label: [sum(values), len(values)] for label, values in survived.items()}}


def _read_litellm_version() -> str:
    lines = (ROOT / "tools" / "vendors" / "litellm.txt").read_text(encoding="utf-8")
    return str(re.findall(r"^litellm==(\S+)", lines, re.MULTILINE)[0])


def read_record() -> dict[str, Any]:
    """Read what was recorded."""
    document: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8"))
    return document


def make_table(document: dict[str, Any]) -> str:
    """Make the table: tokens and evidence of each policy and proxy, in the form of each API."""
    ages = " | ".join(f"age {label}" for label in AGES)
    lines = [
        f"| API | system | sent | reached the model | saved | evidence survived | {ages} |",
        "|---|---|--:|--:|--:|--:|" + "--:|" * len(AGES),
    ]
    for api, systems in document["runs"].items():
        for place, (name, values) in enumerate(systems.items()):
            cells = [
                "" if place else api,
                f"`{name}`" if name in POLICIES else f"{name} {document['versions'][name]}",
                *(f"{values[key]:,.0f}" for key in ("sent_tokens", "upstream_tokens")),
                *(_with_interval(values, key) for key in INTERVALS),
                *(f"{survived / count:.0%}" for survived, count in values["by_age"].values()),
            ]
            lines.append(f"| {' | '.join(cells)} |")
    rows = next(iter(document["runs"]["openai"].values()))["num_examples"]
    about = (
        f"Recorded on {document['date']} by context-bench {document['context_bench']} on Python {document['python']} "
        f"({document['machine']}): `{document['dataset']}`, {rows:.0f} histories in each form. Tokens are cl100k_base, "
        "summed over the requests. Age: turns since the evidence was read. [low, high]: 95% interval."
    )
    return "\n".join([*lines, "", about])


def _with_interval(values: dict[str, Any], key: str) -> str:
    low, high = values["intervals"][key]
    return f"{values[key]:.1%} [{low * 100:.1f}, {high * 100:.1f}]"


START, END = "<!-- agents:start -->\n", "\n<!-- agents:end -->"


def main(arguments: Sequence[str]) -> int:
    """Write the table into its page."""
    if "--record" in arguments:
        record()
    before, rest = PAGE.read_text(encoding="utf-8").split(START)
    _, after = rest.split(END)
    PAGE.write_text(f"{before}{START}{make_table(read_record())}{END}{after}", encoding="utf-8")
    print(f"wrote {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
