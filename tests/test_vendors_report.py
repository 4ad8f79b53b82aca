"""What README and docs/vendors.md say of real proxies is what the recorded run measured, and no more."""

from __future__ import annotations

import re
from typing import Any

from pages import ROOT, commands, fences, load_tool, table

README, PAGE = "README.md", "docs/vendors.md"


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


TOOL: Any = load_tool("vendors_report")
RECORD = TOOL.read_record()
MEASURED = {
    (TOOL.DATASETS[run["dataset"]], name): values for run in RECORD["runs"] for name, values in run["systems"].items()
}


def test_the_record_is_small_and_holds_enough_rows_without_errors() -> None:
    assert TOOL.RECORD.stat().st_size < 20_000
    assert len(MEASURED) == 8
    for values in MEASURED.values():
        assert values["num_examples"] == values["evidence_rows"] >= 149
        assert values["num_errors"] == 0
        assert values["sent_tokens"] - values["upstream_tokens"] == values["counted_tokens_saved"]


def test_both_tables_are_made_from_the_record() -> None:
    for page, make_table in ((README, TOOL.make_short_table), (PAGE, TOOL.make_long_table)):
        assert f"{TOOL.START}{make_table(RECORD)}{TOOL.END}" in read(page), "tools/vendors_report.py writes them anew"


def test_the_cells_are_the_numbers_of_the_record() -> None:
    """Read the table as a person does, without the code that wrote it."""
    packages = {f"{each['package']} {each['version']}": name for name, each in RECORD["proxies"].items()}
    rows = table(README, "what was sent")
    assert len(rows) == 8
    for sent, proxy, claim, saved, off, evidence in rows:
        kind, _, tokens = sent.partition(", ")
        values = MEASURED[kind, packages[proxy]]
        numbers = [int(cell.replace(",", "").partition(" ")[0]) for cell in (tokens, claim, saved)]
        assert numbers == [values[f"{key}_tokens{end}"] for key, end in (("sent", ""), *WITH_SAVED)]
        assert off == (f"{(numbers[1] - numbers[2]) / numbers[2]:+.0%}" if numbers[2] else "–")
        shares = [float(each) for each in re.findall(r"[\d.]+", evidence)]
        low, high = values["intervals"]["evidence_survival"]
        assert shares == [round(100 * each, 1) for each in (values["evidence_survival"], low, high)]


WITH_SAVED = (("claimed", "_saved"), ("counted", "_saved"))


def test_the_pages_show_the_commands_versions_and_date() -> None:
    recorded = [run["command"] for run in RECORD["runs"]]
    assert [line for line in commands(PAGE) if line in recorded] == recorded
    (logs,) = [run["command"] for run in RECORD["runs"] if run["dataset"].endswith("kind=logs")]
    assert any(logs in code for code in fences(README, "sh"))
    for page in (README, PAGE):
        assert f"Recorded on {RECORD['date']} with kompact " in read(page)
    for name, proxy in RECORD["proxies"].items():
        pinned = (ROOT / f"tools/vendors/{name}.txt").read_text(encoding="utf-8")
        assert re.search(rf"^{proxy['package']}(\[\w+\])?=={re.escape(proxy['version'])}", pinned, re.MULTILINE)
        assert f"{proxy['package']} {proxy['version']}" in read(PAGE).partition("## What was measured")[0]


def test_what_the_readme_says_in_words_holds() -> None:
    text = " ".join(read(README).split())
    kinds = list(TOOL.DATASETS.values())
    savings = {key: values["prompt_savings"] for key, values in MEASURED.items()}
    assert "headroom saved most on logs, but it dropped most of the log lines that the answers need." in text
    assert max(savings, key=lambda key: savings[key]) == ("logs", "headroom")
    assert MEASURED["logs", "headroom"]["intervals"]["evidence_survival"][1] < 0.5
    assert "kompact lost no evidence here, but its own count is far off, in both directions" in text
    assert all(MEASURED[kind, "kompact"]["evidence_lost"] == 0 for kind in kinds)
    off = list_claims("kompact")
    assert min(off) < -0.2
    assert max(off) > 0.2


def list_claims(name: str) -> list[float]:
    """By how much a proxy's claims are off, as shares of what was counted."""
    saved = [each for (_, proxy), each in MEASURED.items() if proxy == name and each["counted_tokens_saved"]]
    return [each["claimed_tokens_saved"] / each["counted_tokens_saved"] - 1 for each in saved]


def test_what_the_page_says_in_words_holds() -> None:
    text = " ".join(read(PAGE).split())
    off = list_claims("kompact")
    assert f"kompact's claim is off by {min(off):+.0%} to {max(off):+.0%} of the counted savings" in text
    added = {
        (each["claimed_tokens_saved"] - each["counted_tokens_saved"]) / each["num_examples"]
        for (_, name), each in MEASURED.items()
        if name == "headroom"
    }
    assert len(added) == 2
    assert 0 in added
    assert f"headroom adds its tool `headroom_retrieve` ({max(added):.0f} tokens per request here)" in text


AGENTS: Any = load_tool("agents_report")


def test_the_table_of_agents_histories_is_made_from_its_record() -> None:
    record, page = AGENTS.read_record(), read("docs/agents.md")
    assert f"{AGENTS.START}{AGENTS.make_table(record)}{AGENTS.END}" in page, "tools/agents_report.py writes it anew"
    assert [AGENTS.write_command(api) for api in record["runs"]] == [
        command for command in commands("docs/agents.md") if "--name litellm" in command
    ]
    for systems in record["runs"].values():
        assert list(systems) == list(AGENTS.SYSTEMS)
        sent = {values["sent_tokens"] for values in systems.values()}
        assert len(sent) == 1
        for values in systems.values():
            assert (values["num_examples"], values["num_errors"], values["evidence_rows"]) == (150, 0, 150)
            survived, counts = (sum(column) for column in zip(*values["by_age"].values()))
            assert (survived / counts, counts) == (values["evidence_survival"], 150)
            assert values["prompt_savings"] == 1 - values["upstream_tokens"] / values["sent_tokens"]
        assert systems["litellm"]["upstream_tokens"] == systems["litellm"]["sent_tokens"]
