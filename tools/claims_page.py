"""Write docs/claims.md from claims/*.toml: python tools/claims_page.py [--write]

Without --write (`make claims`) it fails if the page is another than the committed one. What cannot be measured here, as
the data or a vendor's program is missing, keeps its committed line, and is named.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from context_bench.claims.claim import read_claims
from context_bench.claims.judging import Decision, decide_all
from context_bench.claims.measuring import Measurer
from context_bench.claims.report import render_markdown

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "claims.md"
FILES = sorted((ROOT / "claims").glob("*.toml"))
REPLY = "../claims/REPLY.md"
START, END = "<!-- claims:start -->\n", "<!-- claims:end -->"


def make_table(decisions: Sequence[Decision], committed: str) -> str:
    """Make the table, with the committed line of each claim that was not recomputed."""
    head, rule, *lines = render_markdown(decisions, REPLY).splitlines()
    before = {line.partition("</a>")[0]: line for line in committed.splitlines()}
    kept = []
    for each, line in zip(decisions, lines):
        known = before.get(line.partition("</a>")[0], "")
        kept.append(known if each.word == "not recomputed" and each.claim.terms in known else line)
    return "\n".join([head, rule, *kept, ""])


def main(arguments: Sequence[str]) -> int:
    """Measure all claims; write the page, or compare it."""
    data = os.environ.get("CONTEXT_BENCH_DATA")
    claims = [claim for path in FILES for claim in read_claims(path)]
    measurer = Measurer(run=True, data=Path(data) if data else None)
    decisions = decide_all(claims, [measurer.measure(claim) for claim in claims])
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(START)
    committed, after = rest.split(END)
    made = f"{before}{START}{make_table(decisions, committed)}{END}{after}"
    left = [f"{each.claim.id} ({each.reason})" for each in decisions if each.word == "not recomputed"]
    print(f"{len(decisions) - len(left)} of {len(decisions)} claims are as recomputed")
    print("".join(f"not recomputed: {each}\n" for each in left), end="")
    if "--write" in arguments:
        PAGE.write_text(made, encoding="utf-8")
    elif made != text:
        changed = [line for line in made.splitlines() if line not in text.splitlines()]
        print("docs/claims.md is not what was measured: python tools/claims_page.py --write", *changed, sep="\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
