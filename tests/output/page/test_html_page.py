"""The page: what stands on it, what it says was not measured, its size, and that data stays text."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import random
import re
import weakref
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from banks import each_case
from context_bench import EvalResult, evaluate, evaluate_memory
from context_bench.compare.sweeps import name_briefly
from context_bench.metrics import DollarCost, default_metrics
from context_bench.options import VOLUME
from context_bench.output.conclusion import conclude, find_monthly_saving
from context_bench.output.memory import (
    HistoryLengths,
    list_leading_grids,
    list_memory_grids,
    list_memory_notes,
    list_outcomes,
)
from context_bench.output.notes import list_caveats
from context_bench.output.page import HtmlReporter
from context_bench.output.page.answer import ask_sentence, write_headline
from context_bench.output.page.html_page import make_page
from context_bench.output.page.run_facts import RunFacts, Source
from context_bench.output.plots.labels import number_series
from context_bench.output.tables import TableReporter
from context_bench.summary import describe_metric, summarize
from injections import INJECTIONS
from report_pages import Outline, make_result, read_blocks, read_index
from rows import failed_row, make_row


def _compare_two() -> Any:
    """200 examples: the second system is wrong on the last 50 of them."""
    rows = []
    for number in range(200):
        cells = {"example_id": f"needle-{1000 * (1 + number % 2)}-d0.{number % 10}0-of9-s0-{number:03d}"}
        rows.append(make_row(1.0, system="whole", output_tokens=100, input_tokens=100, latency=0.2, **cells))
        right = float(number < 150)
        rows.append(make_row(right, system="half", output_tokens=50, input_tokens=100, latency=0.1, **cells))
    for row in rows:
        row.metadata["output"] = "context"
    return make_result(rows, returns={"whole": "context", "half": "context"})


@pytest.fixture(scope="module")
def page() -> str:
    return HtmlReporter().render(_compare_two())


def test_the_answer_is_the_largest_type_with_three_numbers_and_the_question_below(page: str) -> None:
    article = page.partition("<article")[2]
    assert "<h1>half saves 50.0% of the tokens, and lowers the quality.</h1>" in article
    figures = article.partition("<dl")[2].partition("</dl>")[0]
    assert re.findall("<dt>(.*?)</dt><dd>(.*?)<", figures) == [
        ("quality kept", "75.0%"),
        ("tokens saved", "50.0%"),
        ("dollars saved", "not known"),
    ]
    assert article.index("<h1>") < article.index("<dl") < article.index("How does half") < article.index("<table")


def test_numbers_link_to_the_examples_behind_them(page: str) -> None:
    figures = page.partition("<dl")[2].partition("</dl>")[0]
    (picks,) = re.findall(r'class="to-examples" data-picks="([^"]*)">50 broken</a>', figures)  # 50 of 200 lost
    assert json.loads(unescape(picks)) == {"run": "1", "system": "half", "kind": "broken"}


def test_a_score_of_evidence_is_explained() -> None:
    result = _compare_two()
    result.config |= {"unread": ["whole", "half"], "context_primary": {"": "evidence_recall"}}
    page = HtmlReporter().render(result)
    assert "quality: the share of the evidence that is still in the text; no model answered" in page


def test_undecided_systems_lead_with_the_one_that_saves_most() -> None:
    rows = [
        make_row(1.0, system=name, example_id=n, input_tokens=100, output_tokens=tokens)
        for name, tokens in (("whole", 100), ("bm25:ratio=0.6", 60), ("bm25:ratio=0.2", 20))
        for n in range(30)
    ]
    for row in rows:
        row.metadata["output"] = "context"
    result = make_result(rows, returns={row.system: "context" for row in rows})
    said = "30 examples are too few to say whether bm25 20% lowers the quality; it saves 80.0% of the tokens."
    assert write_headline(result) == said
    page = HtmlReporter().render(result)
    figures = page.partition("<dl")[2].partition("</dl>")[0]
    assert re.findall("<dt>(.*?)</dt><dd>(.*?)<", figures)[:2] == [
        ("quality kept", "100.0%"),
        ("tokens saved", "80.0%"),
    ]
    assert read_index(page)["brief"]["bm25:ratio=0.2"] == "bm25 20%"  # the list of examples has short names too
    result = make_result(result.rows, returns=result.config["returns"], volume=2e6)
    assert "--volume shows no dollars per month: no saving is claimed, or no cost is known." in list_caveats(result)


def test_savings_lead_where_nothing_else_is_known() -> None:
    """A run without gold answers: "nothing could be scored" stands above no number that is known."""
    summary = {"mine": {"num_examples": 40.0, "mean_score": math.nan, "compression_ratio": 0.423}}
    result = EvalResult([], summary, {}, {"systems": {"mine": None}, "returns": {"mine": "context"}})
    assert write_headline(result) == "mine saves 42.3% of the tokens; its quality was not measured."
    summary["mine"].pop("compression_ratio")
    assert write_headline(result) == "Nothing could be scored: only tokens, times and errors were measured."


def test_against_a_baseline_that_saves_tokens_quality_and_tokens_are_both_against_it() -> None:
    """Of 1,000 tokens the baseline keeps 300 and the other 500: 500/300 is 66.7% more; 200 right against 150."""
    rows = [
        make_row(float(n < right), system=name, example_id=n, input_tokens=1000, output_tokens=tokens)
        for name, tokens, right in (("short", 300, 150), ("long", 500, 200))
        for n in range(200)
    ]
    for row in rows:
        row.metadata["output"] = "context"
    result = make_result(rows, returns={"short": "context", "long": "context"})
    said = "long is better than short (+0.250) and reads 66.7% more tokens."
    assert write_headline(result) == f"{said} It is not shown that this data could reveal a loss."
    figures = HtmlReporter().render(result).partition("<dl")[2].partition("</dl>")[0]
    shown = re.findall("<dt>(.*?)</dt><dd>(.*?)<", figures)
    assert shown[:2] == [("quality against short", "133.3%"), ("tokens against short", "+66.7%")]
    turned = make_result(list(reversed(rows)), returns={"long": "context", "short": "context"})
    assert write_headline(turned) == "short is worse than long (-0.250) and reads 40.0% fewer tokens."


def test_dollars_of_a_month_have_their_interval() -> None:
    """A dollar saved for 1,000 examples is 2,000 for two million; 70,000 a day are 2.13 million in a month."""
    rows = [
        make_row(
            1.0,
            system=name,
            example_id=n,
            input_tokens=100,
            output_tokens=tokens,
            metadata={"cost_usd": cost + n * 1e-6},
        )
        for name, tokens, cost in (("passthrough", 100, 0.002), ("half", 50, 0.001))
        for n in range(400)
    ]
    metrics = [*default_metrics(systems=2), DollarCost()]
    config = {"metrics": [describe_metric(each) for each in metrics], "score_field": "score", "volume": 2e6}
    names = ["passthrough", "half"]
    result = EvalResult.from_summary(rows, summarize(rows, names, metrics, config), config, metrics)
    month = find_monthly_saving(result, "half")
    assert month is not None
    assert month.value == pytest.approx(2000.0)
    assert month.low <= 2000.0 <= month.high
    assert "At 2,000,000 requests a month, half saves $2,000.00 [" in conclude(result)
    page = HtmlReporter().render(result)
    assert "<dt>dollars saved per month</dt><dd>$2,000.00<small>" in page
    assert VOLUME.parse("2000000/month") == VOLUME.parse("2M/month") == 2e6
    assert VOLUME.parse("70k/day") == pytest.approx(70_000 * 365 / 12)
    for wrong in ("2000000", "many/month", "-1/day", "5/fortnight", "/month"):
        with pytest.raises(ValueError):
            VOLUME.parse(wrong)


def test_no_two_of_24_systems_have_the_same_mark() -> None:
    names = [f"{family}:ratio=0.{n}" for family in ("bm25", "truncate", "drop") for n in range(1, 7)]
    names += [f"system-{n}" for n in range(6)]
    marks = number_series(names)
    assert len(set(marks.values())) == 24
    assert len({marks[name] % 8 for name in names[:6]}) == 1  # a family has one colour
    assert len({marks[name] // 8 for name in names[:6]}) == 6  # and a shape for each setting
    assert [marks[name] // 8 for name in names[:6]] == [marks[name] // 8 for name in names[6:12]]  # the same in each
    marks = number_series(["whole", "oracle", *(f"cut:keep={n}" for n in range(10))])
    assert {marks[f"cut:keep={n}"] % 8 for n in (8, 9)} == {3}  # more settings than shapes: a colour of no family


def test_short_names() -> None:
    names = ["bm25:ratio=0.3", "needle:length=4000,n=80", "passthrough", "kompact", "kv:n=10", "kv:n=20"]
    assert name_briefly(names) == {
        **dict(zip(names, ["bm25 30%", "needle 4k", "passthrough", "kompact"])),
        **{name: name for name in names[4:]},  # these would be one name
    }


def test_the_question_stands_on_the_page(page: str) -> None:
    texts = [text for text in Outline(page).texts if text.strip()]
    assert any(text.startswith("How does half compare with whole on ") for text in texts)
    assert "No system is shown to be as good as whole. Worse: half." in texts  # 50 of 200 lost


def test_a_sweep_is_asked_about_as_one_system() -> None:
    names = ("whole", *(f"cut:ratio=0.{tenth}" for tenth in (1, 3, 5, 7)), *(f"drop[level={level}]" for level in "ab"))
    facts = RunFacts(make_result([make_row(1.0, system=name, dataset="d") for name in names]), "run")
    asked = "How do cut 10%|30%|50%|70% and drop level a|b compare with whole on d (1 example)?"
    assert ask_sentence(facts) == asked


def test_the_parts_are_in_their_order(page: str) -> None:
    wanted = [
        "headline",
        "pareto",
        "datasets",
        "needles",
        "times",
        "errors",
        "method",
        "examples",
    ]
    assert re.findall(r'<section id="(\w+)"', page) == wanted


def test_numbers_have_intervals_and_verdicts(page: str) -> None:
    """The page writes what the terminal writes: the same columns, numbers, stars and intervals."""
    assert "▼ worse" in page
    head, *lines = TableReporter().list_headline(_compare_two())
    table = page.partition('<table class="headline">')[2].partition("</table>")[0]
    assert re.findall(r'<th scope="col">([^<]*)</th>', table) == ["system", "verdict", *head[1:-1], "look at"]
    for row, wanted in zip(table.partition("<tbody>")[2].split("</tr>"), lines, strict=False):
        cells = [unescape(re.sub("<[^>]+>", " ", cell)).split() for cell in re.findall(r"<t[dh].*?</t[dh]>", row)]
        assert [cells[0], *cells[2:-1]] == [cell.split() for cell in wanted[:-1]]


def test_the_front_is_what_no_other_beats(page: str) -> None:
    """`half` is cheaper and `whole` is better, so both are on it."""
    assert "<figcaption>On the Pareto front of quality and cost: half and whole. Up and to the left" in page


def test_the_front_of_the_plot_is_that_of_the_table() -> None:
    """Close is dearer and no better as a point, but nothing shows it; flaky fails where prompts are long."""
    costs = {"whole": 400, "close": 401, "flaky": 400}
    rows = [
        failed_row(system=name, example_id=place)
        if name == "flaky" and place > 68
        else make_row(
            1.0, system=name, example_id=place, output_tokens=tokens + 7 * (place - 50) * (-1) ** (tokens % 2)
        )
        for name, tokens in costs.items()
        for place in range(100)
    ]
    result = make_result(rows, returns=dict.fromkeys(costs, "context"))
    head, *lines = TableReporter().list_headline(result)
    assert [line[head.index("Pareto")] for line in lines] == ["front", "front", "off"]
    part = HtmlReporter().render(result).partition('<section id="pareto"')[2].partition("</section>")[0]
    cells = [re.sub("<[^>]+>", "", cell) for cell in re.findall(r"<t[dh].*?</t[dh]>", part)]
    assert [cells[cells.index(name) + 3] for name in costs] == ["yes", "yes", "no"]
    assert "On the Pareto front of quality and cost: whole and close" in part


def test_names_stand_beside_their_own_marks() -> None:
    """Seven systems, some of them close to one another: a name stands beside its own mark, and nearest to it."""
    places = {"all": (4000, 1), "none": (20, 0), "oracle": (50, 1), "minify": (3850, 1), "half": (2000, 0.5)}
    places |= {"random": (1990, 0.47), "bm25": (1200, 1)}
    rows = [
        make_row(float(number < share * 100), system=name, example_id=number, output_tokens=tokens, input_tokens=4000)
        for name, (tokens, share) in places.items()
        for number in range(100)
    ]
    page = HtmlReporter().render(make_result(rows, returns=dict.fromkeys(places, "context")))
    part = page.partition('<section id="pareto"')[2].partition("</section>")[0]
    for kind in ("window", "phone"):
        picture = part.partition(f'<div class="{kind}">')[2].partition("</svg>")[0]
        marks = re.findall(r'translate\(([\d.]+) ([\d.]+)\)" class="mark s\d(?: hollow)?" data-tip="(\w+):', picture)
        names = re.findall(r'<text x="([\d.]+)" y="([\d.]+)" text-anchor="(\w+)" class="point">(\w+)</text>', picture)
        assert {name for *_, name in names} == {name for *_, name in marks} == set(places)
        for x, y, anchor, name in names:
            wide = 7.2 * len(name)
            left = float(x) - {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor] * wide
            away = {
                other: math.hypot(max(left - float(at), 0.0, float(at) - left - wide), float(down) - float(y) + 4)
                for at, down, other in marks
            }
            assert away[name] < 60  # a name that is moved away has a line to its mark
            assert kind == "phone" or min(away, key=away.__getitem__) == name  # a phone has less room


def test_a_run_of_memory_systems_has_the_tables_of_the_terminal(tmp_path: Path) -> None:
    result = evaluate_memory(
        ["naive", "bm25"], "synthetic-memory:length=4000", max_conversations=1, cache_dir=str(tmp_path), progress=False
    )
    page = HtmlReporter(str(tmp_path)).render(result)
    part = page.partition('<section id="memory"')[2].partition("</section>")[0]
    rows = [
        tuple(unescape(cell) for cell in re.findall(r"<t[dh][^>]*>([^<]*)</t[dh]>", row)) for row in part.split("<tr>")
    ]
    grids = [*list_leading_grids(result), *list_memory_grids(result, HistoryLengths(result.rows))]
    assert len(grids) >= 4
    brief = name_briefly(result.systems)
    for grid in grids:
        for name, *cells in grid.lines[1:]:
            assert (brief.get(name, name), *cells) in rows
    for note in (*list_outcomes(result), *list_memory_notes(result)):
        assert note in unescape(part)
    assert '<a href="#memory">' in page
    budgeted = [row for row in read_blocks(page) if "retrieval_recall_at_10" in row["scores"]]
    full = next(row for row in budgeted if row["scores"]["retrieval_recall"] == 1.0 and len(row["context"]) == 3)
    (evidence, named), (retrieved, items), (reader, got) = full["context"]
    assert evidence == "evidence"
    assert named[0][1].startswith("turn ")
    assert named[0][1].strip().endswith(": retrieved")
    assert retrieved.startswith("retrieved, ")
    assert any(marked for _, _, marked in items)
    assert reader == "what the reader got"
    assert {kind for kind, *_ in (*items, *got)} <= {"k", "f"}, "nothing of it is an addition"


def test_needles_are_averaged_by_length_and_depth(page: str) -> None:
    """Numbers 0 to 199: even ones have 1,000 tokens and depths of 0, .2, .4, .6 or .8; so 20 in each cell."""
    cells = re.findall(r'data-tip="half: ([\d,]+) tokens, depth ([\d–%]+): ([\d.]+), (\d+) examples"', page)
    assert len(cells) == 10
    assert set(cells[::2][:2]) == {("1,000", "0–20%", "0.75", "20"), ("1,000", "20–40%", "0.75", "20")}
    assert "half minus whole: 1,000 tokens, depth 0–20%: -0.25, 20 examples" in page


def test_what_was_not_measured_is_said(page: str) -> None:
    """All of it stands folded at the end of the run, a line for each part."""
    part = page.partition('<details class="missing">')[2].partition("</details>")[0]
    titles = ["Curve of a sweep", "Position of the evidence", "Evidence: survived or lost, right or wrong"]
    titles += ["Tokens saved, by three meters", "Overhead of the proxy"]
    assert re.findall("<b>(.*?)</b>", part) == titles
    assert "<summary>Not measured (5)</summary>" in part
    assert page.index('<section id="method"') < page.index('<details class="missing">')
    assert "None of 400 rows failed." in page


def test_errors_are_grouped_by_kind() -> None:
    rows = [make_row(example_id=number, error=f"Timeout: after {number} s") for number in range(3)]
    page = HtmlReporter().render(make_result([*rows, make_row(example_id=9, error="Refused: no"), make_row(1.0)]))
    part = page.partition('<section id="errors"')[2].partition("</section>")[0]
    assert re.findall(r'<th scope="row">(\w+)</th><td>(\d+)</td>', part) == [("Timeout", "3"), ("Refused", "1")]


def test_rows_say_what_flipped_against_the_baseline(page: str) -> None:
    index = read_index(page)
    columns = index["columns"]
    assert index["rows"] == 400
    assert columns["flip"].count(-1) == 50
    assert {columns["system"][place] for place, flip in enumerate(columns["flip"]) if flip} == {"half"}


def test_it_asks_nothing_of_anybody(page: str) -> None:
    for tag, name, value in Outline(page).attributes:
        assert name not in ("src", "srcset", "action", "style"), (tag, name)
        assert not name.startswith("on"), (tag, name)
        assert name != "href" or value.startswith("#")
    assert "http://" not in page
    assert "https://" not in page


def test_the_policy_names_the_script_and_the_style_that_are_there(page: str) -> None:
    (policy,) = [value for tag, name, value in Outline(page).attributes if tag == "meta" and "default-src" in value]
    for tag in ("script", "style"):
        (text,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.S)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


# --- size


@pytest.mark.long
def test_a_thousand_rows_make_at_most_two_megabytes_and_cuts_are_said(tmp_path: Path) -> None:
    """Random letters hardly compress: as bad as it gets."""
    draw = random.Random(1)
    letters = (b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ \n" * 5)[:256]

    def write(length: int) -> str:
        return draw.randbytes(length).translate(letters).decode()

    examples = [
        {"id": f"e{n}", "context": write(6_000) + "THE EVIDENCE" + write(6_000), "question": write(300), "answer": "x"}
        | {"evidence": ["THE EVIDENCE"]}
        for n in range(500)
    ]

    def turns(example: dict[str, Any]) -> str:
        return str(example["context"])[::-1]

    def keeps(example: dict[str, Any]) -> str:
        return str(example["context"])

    result = evaluate([turns, keeps], examples, cache_dir=str(tmp_path), progress=False)
    page = HtmlReporter(str(tmp_path)).render(result)
    assert read_index(page)["rows"] == 1000
    assert len(page.encode()) <= 2_000_000
    assert len(page.encode()) >= 300_000
    rows = read_blocks(page)
    assert all(any(kind == "f" for _, pieces in row["context"] for kind, _, _ in pieces) for row in rows)


def test_the_context_has_what_was_dropped_and_the_evidence_marked(tmp_path: Path) -> None:
    example = {"id": 1, "context": "one two\nthe code is 42\nthree", "answer": "42", "evidence": ["the code is 42"]}

    def drops(example: dict[str, Any]) -> str:
        return "one two\nthree"

    result = evaluate([drops], [example], cache_dir=str(tmp_path), progress=False)
    (row,) = read_blocks(HtmlReporter(str(tmp_path)).render(result))
    assert row["gold"] == ["42"]
    ((_, pieces),) = row["context"]
    assert ["d", "the code is 42", 1] in pieces
    assert "".join(text for kind, text, _ in pieces if kind in "kd") == example["context"]


def test_without_a_store_the_page_says_that_contexts_are_not_known(page: str) -> None:
    assert read_blocks(page)[0]["gold"] is None
    assert read_blocks(page)[0]["context"] == []


def test_rows_are_let_go_of_while_the_page_is_written() -> None:
    """However many rows there are, no more than a block of them is in memory, and the page comes in pieces."""
    alive: weakref.WeakSet[_Watched] = weakref.WeakSet()
    most = 0

    def read() -> Iterator[Source]:
        nonlocal most
        for number in range(1_500):
            watched = _Watched()
            example = {"id": number, "context": f"context {number} " * 50, "answer": "a", "watched": watched}
            alive.add(watched)
            most = max(most, len(alive))
            row = make_row(1.0, system="s", example_id=number, response=f"answer {number}")
            yield Source(row, example, {"context": f"context {number} "})
            del watched, example, row

    facts = RunFacts(make_result([make_row(1.0)]), "1")
    pieces = list(make_page([(facts, read())], 1_500))
    assert most <= 150, "a block has 100 rows"
    assert len(pieces) > 15
    assert read_index("".join(pieces))["rows"] == 1_500


class _Watched:
    """Part of an example: it goes when the example does."""


def test_a_sweep_has_its_curve_as_a_table() -> None:
    """Three settings on 40 examples: quality 1, 0.5 and 0.25 at 100, 50 and 25 tokens."""
    rows = []
    for number in range(40):
        for ratio, right in (("1", 1.0), ("0.5", float(number % 2)), ("0.25", float(number % 4 == 0))):
            tokens = int(100 * float(ratio))
            rows.append(make_row(right, system=f"cut:ratio={ratio}", example_id=number, output_tokens=tokens))
            rows[-1].metadata["output"] = "context"
    page = HtmlReporter().render(make_result(rows))
    part = page.partition('<section id="curve"')[2].partition("</section>")[0]
    assert re.findall(r">ratio=([\d.]+)</span></th><td>(\d+)</td><td>([\d.]+%)</td>", part) == [
        ("0.25", "25", "75.0%"),
        ("0.5", "50", "50.0%"),
        ("1", "100", "0.0%"),
    ]


def test_without_a_sweep_the_curve_is_not_measured(page: str) -> None:
    assert "</b>: no system was run at several settings of a parameter" in page


def test_several_runs_stand_side_by_side() -> None:
    results = [make_result([make_row(score, system=name) for name in "ab"]) for score in (0.0, 1.0)]
    page = "".join(HtmlReporter().write_runs(results))
    part = page.partition('<section id="side"')[2].partition("</section>")[0]
    assert re.findall(r'</span></th><td data-head="run">(\d)</td>', part) == ["1", "2", "1", "2"]
    labels = re.findall(r'<h2 id="([\w-]+)-title">(.*?)</h2>', page)
    assert len({text for _, text in labels}) == len(labels), "every heading names its run"


# --- data stays text


def _inject(text: str) -> Any:
    rows = [
        make_row(1.0, system=text, example_id=text, dataset=text, response=text),
        make_row(0.0, system="b", example_id=text, dataset=text, response=text),
        make_row(system="b", example_id="2", dataset=text, error=f"{text}: {text}"),
        make_row(None, system=text, example_id="2", dataset=text),
    ]
    for row in rows:
        row.metadata |= {"injected_tools": [text], "llm-judge": {"rationale": text}, "traceback": [text]}
        row.unscored = {text: text} if row.error is None else {}
    notes = {text: {"mean_score": text}}
    result = make_result(rows, command=[text], run_file=text, sources={text: {text: text}}, model=text)
    result.notes |= notes
    return result


def test_there_are_at_least_sixty() -> None:
    assert len(set(INJECTIONS)) >= 60


@each_case("number", range(len(INJECTIONS)))
def test_no_text_of_data_becomes_anything_else(number: int) -> None:
    text = INJECTIONS[number]
    plain = Outline(HtmlReporter().render(_inject("two\nlines" if "\n" in text else "plain")))
    page = HtmlReporter().render(_inject(text))
    outline = Outline(page)
    assert sorted(outline.elements) == sorted(plain.elements)
    assert outline.comments == []
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff]", page)
    page.encode()
    assert read_index(page)["rows"] == 4
