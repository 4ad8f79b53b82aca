"""SWE-bench, from records in the source's own schema to the files of a patch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from context_bench.datasets.catalog import catalog
from context_bench.evaluators import ContextRecall
from public_cases import Case, load_case, needed_columns, primary, prompt_of

PATCH = """diff --git a/shop/cart.py b/shop/cart.py
index 1..2 100644
--- a/shop/cart.py
+++ b/shop/cart.py
@@ -1,4 +1,4 @@
 def total(items):
-    return sum(items)
+    return sum(item.price for item in items)
\x20
--- no header, but a line of SQL that goes
diff --git a/shop/new.py b/shop/new.py
new file mode 100644
--- /dev/null
+++ b/shop/new.py
@@ -0,0 +1 @@
+PRICE = 1
"""
OTHER = PATCH.replace("shop/", "store/")
RECORD = {
    "repo": "made/shop",
    "instance_id": "made__shop-1",
    "base_commit": "0" * 40,
    "patch": PATCH,
    "test_patch": "SECRET TEST",
    "problem_statement": "Total fails in shop/cart.py with items.",
    "hints_text": "SECRET HINT",
    "created_at": "2020-01-01T00:00:00Z",
    "version": "1.0",
    "FAIL_TO_PASS": '["SECRET"]',
    "PASS_TO_PASS": "[]",
    "environment_setup_commit": "1" * 40,
}
CODE = (
    "<issue>\nTotal fails.\n</issue>\n[start of shop/cart.py]\n1 def total(items):\n2     return sum(items)\n"
    "3 \n4 -- no header, but a line of SQL that goes\n[end of shop/cart.py]\n"
)
NEEDS = frozenset({"repo", "instance_id", "patch", "problem_statement"})


def _case(name: str, record: dict[str, Any], config: str, asks: str, layout: str = "hub") -> Case:
    needs = NEEDS if config == "issue" else NEEDS - {"problem_statement"} | {"text"}
    return Case(name, record, PATCH, OTHER, tuple(asks.split("|")), needs, config, layout)


CASES = [
    _case("swebench", RECORD, "issue", "Total fails in|unified diff", "issue"),
    _case("swebench", RECORD | {"text": CODE}, "oracle", "[start of shop/cart.py]|Total fails."),
    _case("swebench", RECORD | {"text": CODE}, "bm25-13k", "[start of shop/cart.py]"),
    _case("swebench-verified", RECORD | {"difficulty": "<15 min fix"}, "issue", "Total fails in"),
    _case("swebench-lite", RECORD, "issue", "Total fails in|made/shop"),
]


@pytest.fixture(params=CASES, ids=lambda case: case.id)
def case(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_a_record_has_the_columns_of_the_card(case: Case) -> None:
    assert {*case.record} == {*catalog()[case.name].columns[case.layout]}


def test_the_gold_patch_scores_1_and_one_of_other_files_0(case: Case, tmp_path: Path) -> None:
    (example,) = load_case(case, tmp_path)
    prompt = prompt_of(example)
    for text in case.asks:
        assert prompt.count(text) == 1
    assert "SECRET" not in prompt
    assert primary(case.name, example, case.right) == 1.0
    assert primary(case.name, example, case.wrong) == 0.0


def test_a_missing_column_is_named(case: Case, tmp_path: Path) -> None:
    assert needed_columns(case, tmp_path) == case.needs


def test_what_the_patch_touches_is_the_evidence(tmp_path: Path) -> None:
    (example,) = load_case(CASES[1], tmp_path)
    wanted = ["shop/cart.py", "return sum(items)", "-- no header, but a line of SQL that goes"]
    assert [span["text"] for span in example["evidence"]] == wanted
    assert all(example["context"][span["start"] : span["end"]] == span["text"] for span in example["evidence"])
    (issue,) = load_case(CASES[0], tmp_path)
    assert [span["text"] for span in issue["evidence"]] == ["shop/cart.py"]
    (bare,) = load_case(CASES[0], tmp_path, RECORD | {"problem_statement": "It fails."})
    assert bare["evidence"] == []


def test_evidence_can_be_lost(tmp_path: Path) -> None:
    (example,) = load_case(CASES[1], tmp_path)
    kept = example["context"].replace("return sum(items)", "")
    assert ContextRecall().score(example, {"context": kept})["evidence_recall"] == pytest.approx(2 / 3)


def test_the_cards_say_that_nothing_is_run() -> None:
    for name in ("swebench", "swebench-verified", "swebench-lite"):
        card = catalog()[name]
        assert "repositories are not run" in card.summary
        assert "nothing is run here" in card.stand_in
