"""The answer at the head of a run on the page: the conclusion in plain words, three numbers, and the question."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from context_bench.compare.blind_spots import VOID
from context_bench.compare.curves import Curve, choose_own_curve, compare_curves
from context_bench.compare.sweeps import find_sweeps, join_settings, name_briefly, write_briefly
from context_bench.compare.verdicts import Comparison
from context_bench.numbers import (
    COMPRESSION_RATIO,
    COST_PER_1K_USD,
    EVIDENCE_SURVIVAL,
    NUM_EXAMPLES,
    PROMPT_SAVINGS,
    dollars,
    percent,
    score,
)
from context_bench.output.columns import is_answered_by_script, write_limits
from context_bench.output.conclusion import (
    THAN,
    compare_tokens,
    conclude,
    describe_alone,
    find_monthly_saving,
    find_saving,
    sort_verdicts,
    write_token_change,
)
from context_bench.output.elements import Child, Markup, element, join
from context_bench.output.page.run_facts import RunFacts, clean_name
from context_bench.output.plots.pareto import choose_quality
from context_bench.results import EvalResult
from context_bench.stats import Interval, Verdict
from context_bench.text import count_things, dump_json, list_names

_MAX_SYSTEMS_TOLD = 6  # systems whose numbers the sentence states
_KEEPS = {
    "equivalent": "keeps the quality",
    "better": "improves the quality",
    "not worse": "does not lower the quality",
}
_LEAST_SHARE = 0.0005  # a smaller share rounds to 0.0%


def show_answer(facts: RunFacts) -> Markup:
    """Lay out the answer: the conclusion, three numbers, the conclusion with names and numbers, and the question."""
    result = facts.result
    if facts.state:
        return join(
            element("h1", {"class": "answer"}, facts.state), element("p", {"class": "question"}, ask_sentence(facts))
        )
    curves = facts.draw_curves() if len(find_sweeps(result.summary)) > 1 else []
    chosen = _choose_system(result, curves)
    return join(
        element("h1", None, write_headline(result, curves)),
        None if chosen is None else _show_figures(facts, chosen),
        element(
            "p",
            {"class": "answer"},
            write_briefly(answer_sentence(facts, curves), [*result.systems, *result.settings.datasets]),
        ),
        element("p", {"class": "question", "title": ", ".join(result.systems)}, ask_sentence(facts)),
    )


# --- the conclusion in plain words


def write_headline(result: EvalResult, curves: Sequence[Curve] = ()) -> str:
    """Write the conclusion for readers without statistics; it claims a saving only if `conclude` does."""
    comparison = result.comparison
    if comparison is None or all(each.control for each in comparison.verdicts):
        return _tell_without_verdict(result)
    brief = name_briefly(result.summary)
    if comparison.context_unneeded:
        return "These examples can be answered without their context, so they cannot show a loss."
    standing = sort_verdicts(result, comparison)
    if standing.good:
        return _tell_good(result, standing.good[0], comparison, brief)
    if standing.blind:
        names = list_names([brief[each.name] for each in standing.blind], 3)
        return f"These examples cannot show whether {names} loses anything: blind truncation does equally well."
    if standing.undecided:
        return _tell_undecided(result, standing.undecided, brief)
    if standing.worse:
        if len(standing.worse) > 1 and (compared := compare_curves(curves)):
            return write_briefly(compared, result.summary)
        return _tell_worse(result, standing.worse, comparison, brief)
    if standing.zeros:
        return "Every answer is wrong, even with the whole context: check the model and the gold answers."
    return "Every system failed on every example."


def _tell_good(result: EvalResult, verdict: Verdict, comparison: Comparison, brief: Mapping[str, str]) -> str:
    """Write quality and savings of the system, followed by its disadvantages."""
    found = [each.name for own in comparison.by_dataset.values() for each in own if each.word == "worse"]
    share, change = find_saving(result, verdict.name)[1], compare_tokens(result, verdict.name)
    against: list[str] = []
    if change is not None:
        parts = [_compare_with_baseline(verdict, comparison.baseline, change, brief)]
    else:
        parts = [f"{brief[verdict.name]} {_KEEPS[verdict.word]}"]
        if share >= _LEAST_SHARE:
            parts.append(f" and saves {percent(share)} of the tokens")
        against += [f"adds {percent(-share)} to the tokens"] if -1e9 < share <= -_LEAST_SHARE else []
    against += [f"is worse on {count_things(found.count(verdict.name), 'dataset')}"] if verdict.name in found else []
    against += _tell_lost(result, verdict.name)
    parts += [f", but {' and '.join(against)}"] if against else []
    parts.append(".")
    if comparison.can_have_failed(verdict.name) is False:
        parts.append(" It is not shown that this data could reveal a loss.")
    return "".join(parts)


def _compare_with_baseline(verdict: Verdict, baseline: str, change: float, brief: Mapping[str, str]) -> str:
    """Compare a system with a baseline that saves tokens too: quality and tokens are relative to it."""
    difference = f" ({verdict.difference:+.3f})" if math.isfinite(verdict.difference) else ""
    word = f"{verdict.word} {THAN.get(verdict.word, 'than')} {brief[baseline]}{difference}"
    return f"{brief[verdict.name]} is {word} and reads {write_token_change(change)}"


def _tell_undecided(result: EvalResult, undecided: Sequence[Verdict], brief: Mapping[str, str]) -> str:
    """Write that the quality of the system that saves most is not decided."""
    verdict = _choose_undecided(result, undecided)
    if verdict is None:
        return f"{list_names([brief[each.name] for each in undecided], 3)} changed nothing, so nothing was tested."
    share, are = find_saving(result, verdict.name)[1], "is" if verdict.n == 1 else "are"
    few = f"{count_things(verdict.n, 'example')} {are} too few to say whether {brief[verdict.name]} lowers the quality"
    return f"{few}; it saves {percent(share)} of the tokens." if share >= _LEAST_SHARE else f"{few}."


def _choose_undecided(result: EvalResult, undecided: Sequence[Verdict]) -> Verdict | None:
    """Choose the system that saves most among those that were tested."""
    tested = [each for each in undecided if each.reason != VOID]
    return max(tested, key=lambda each: find_saving(result, each.name)[1], default=None)


def _tell_worse(result: EvalResult, worse: list[Verdict], comparison: Comparison, brief: Mapping[str, str]) -> str:
    change = compare_tokens(result, worse[0].name)
    if len(worse) > 1:
        than = "lower the quality" if change is None else f"are worse than {brief[comparison.baseline]}"
        return f"All {len(worse)} systems {than}."
    if change is not None:
        return f"{_compare_with_baseline(worse[0], comparison.baseline, change, brief)}."
    share = find_saving(result, worse[0].name)[1]
    saves = f"saves {percent(share)} of the tokens, and " if share >= _LEAST_SHARE else ""
    return f"{brief[worse[0].name]} {saves}lowers the quality."


def _tell_without_verdict(result: EvalResult) -> str:
    """Write the savings if known, even without scores; else the score; else that no score is known."""
    brief, key = name_briefly(result.summary), choose_quality(result)
    chosen = _choose_system(result)
    value = math.nan if chosen is None else result.summary[chosen].get(key, math.nan)
    scored = f"a score of {score(value)}" if math.isfinite(value) else ""
    if chosen is not None and (share := find_saving(result, chosen)[1]) > -1e9:
        saved = f"saves {percent(share)} of the tokens" if share > -_LEAST_SHARE else f"adds {percent(-share)} tokens"
        lost = _tell_lost(result, chosen)
        more = f", and {lost[0]}" if lost else f", with {scored}" if scored else "; its quality was not measured"
        return f"{brief[chosen]} {saved}{more}."
    if chosen is not None and scored:
        return f"{brief[chosen]} has {scored}; there is no second system to compare with."
    return "Nothing could be scored: only tokens, times and errors were measured."


def _tell_lost(result: EvalResult, name: str) -> list[str]:
    """Write the share of examples with lost evidence, if a script answered or nothing compares the answers."""
    lost = 1 - result.summary[name].get(EVIDENCE_SURVIVAL, math.nan)
    told = lost > 0 and (result.comparison is None or is_answered_by_script(result))
    return [f"loses the evidence in {percent(lost)} of the examples"] if told else []


def _choose_system(result: EvalResult, curves: Sequence[Curve] = ()) -> str | None:
    """Choose the system of the three numbers; None if no single one stands out.

    If all settings of several curves are worse, choose the best setting of the user's own curve.
    """
    comparison = result.comparison
    names = [name for name in result.summary if name not in result.settings.controls]
    if comparison is not None and comparison.context_unneeded:
        return None
    if comparison is None or all(each.control for each in comparison.verdicts):
        found = [name for name in names if comparison is None or name != comparison.baseline] or names
        return max(found, key=lambda name: find_saving(result, name)[1]) if found else None
    standing = sort_verdicts(result, comparison)
    if standing.good:
        return standing.good[0].name
    if not standing.blind and (verdict := _choose_undecided(result, standing.undecided)) is not None:
        return verdict.name
    left = [*standing.worse, *standing.undecided]
    if compare_curves(curves) and standing.worse == left:
        own = {point.system for point in choose_own_curve(curves).points}
        left = sorted((each for each in left if each.name in own), key=lambda each: -each.difference)[:1]
    return left[0].name if len(left) == 1 and not standing.blind else None


# --- three numbers


class _Figure(NamedTuple):
    title: str
    value: str
    notes: list[str]
    kinds: tuple[str, ...]  # the kinds of examples to link to


def _show_figures(facts: RunFacts, name: str) -> Markup:
    """Lay out quality, tokens and dollars of one system, each with links to the examples behind it."""
    brief = name_briefly(facts.result.summary)
    shown: list[Child] = []
    for figure in (_tell_quality(facts, name), _tell_tokens(facts, name), *_tell_dollars(facts, name)):
        links = link_counts(facts, name, figure.kinds)
        notes = [element("small", None, note) for note in figure.notes if note]
        notes += [element("small", None, *links)] if links else []
        title, value = element("dt", None, figure.title), element("dd", None, figure.value, *notes)
        shown.append(element("div", None, title, value))
    return element("dl", {"class": "figures", "aria-label": f"Numbers of {brief[name]}"}, *shown)


def _tell_quality(facts: RunFacts, name: str) -> _Figure:
    result, key = facts.result, choose_quality(facts.result)
    own, brief = result.summary[name].get(key, math.nan), name_briefly(result.summary)
    verdict = None if result.comparison is None else result.comparison.of(name)
    kinds = ("broken", "fixed", "failed")
    if verdict is None or result.comparison is None:
        return _Figure("score", score(own) if math.isfinite(own) else "not measured", [], kinds)
    baseline = result.comparison.baseline
    base = result.summary[baseline].get(key, math.nan)
    limits = verdict.interval
    change = f"difference {verdict.difference:+.3f}"
    change += f" [{limits.low:+.3f}, {limits.high:+.3f}]" if limits.known else ""
    notes = [f"score: {brief[name]} {score(own)}, {brief[baseline]} {score(base)}", f"{change}: {verdict.word}"]
    if name in result.settings.unread and set(result.settings.context_primary.values()) == {"evidence_recall"}:
        notes.append("quality: the share of the evidence that is still in the text; no model answered")
    value = percent(own / base) if base > 0 and math.isfinite(own) else score(own)
    kept = "quality kept" if compare_tokens(result, name) is None else f"quality against {brief[baseline]}"
    return _Figure(kept if base > 0 else "score", value, notes, kinds)


def _tell_tokens(facts: RunFacts, name: str) -> _Figure:
    result = facts.result
    known = (PROMPT_SAVINGS, COMPRESSION_RATIO)
    share = find_saving(result, name)[1]
    key = next((key for key in known if result.summary[name].get(key) == share), known[0])
    if share <= -1e9:
        return _Figure("tokens saved", "not measured", [result.notes.get(name, {}).get(key, "")], ("lost", "untouched"))
    change = compare_tokens(result, name)
    if change is not None and result.comparison is not None:
        baseline = result.comparison.baseline
        brief = name_briefly(result.summary)[baseline]
        saved = f"saved {percent(share)}, {brief} {percent(find_saving(result, baseline)[1])}"
        return _Figure(f"tokens against {brief}", f"{100 * change:+.1f}%", [saved], ("lost", "untouched"))
    return _Figure("tokens saved", percent(share), [_write_interval(result, name, key)], ("lost", "untouched"))


def _write_interval(result: EvalResult, name: str, key: str) -> str:
    interval = result.intervals.get(name, {}).get(key)
    return "" if interval is None else f"95% interval {write_limits(interval, percent)}"


def _tell_dollars(facts: RunFacts, name: str) -> Iterator[_Figure]:
    """Write the dollars saved for 1,000 examples, and per month of `--volume`."""
    result = facts.result
    saving = None if result.comparison is None else result.comparison.savings.get(name)
    cost = result.summary[name].get(COST_PER_1K_USD, math.nan)
    if saving is None:
        why = result.notes.get(name, {}).get(COST_PER_1K_USD, "no model was paid, or its price is unknown")
        title, value = ("dollars per 1,000", dollars(cost)) if math.isfinite(cost) else ("dollars saved", "not known")
        yield _Figure(title, value, [why], ())
        return
    if not saving.per_1k.known:
        yield _Figure("dollars saved per 1,000", "not claimed", [saving.note.removeprefix("not claimed: ")], ())
        return
    yield _Figure("dollars saved per 1,000", dollars(saving.per_1k.value), [_bracket(saving.per_1k)], ())
    month = find_monthly_saving(result, name)
    if month is not None:
        at = f"at {result.settings.volume:,.0f} requests"
        yield _Figure("dollars saved per month", dollars(month.value), [f"{_bracket(month)}, {at}"], ())


def _bracket(interval: Interval) -> str:
    return f"95% interval [{dollars(interval.low)}, {dollars(interval.high)}]"


KINDS = {
    "lost": "lost their evidence",
    "broken": "broken",
    "fixed": "fixed",
    "failed": "failed",
    "untouched": "untouched",
}
"""The kinds of examples that numbers link to, with the texts of the links."""


def link_counts(
    facts: RunFacts, name: str, kinds: tuple[str, ...] = tuple(KINDS), *, brief: bool = False
) -> list[Child]:
    """Link to the examples of each kind that a system has."""
    counts = facts.counts.get(clean_name(name), {})
    links: list[Child] = []
    rows = facts.result.summary[name].get(NUM_EXAMPLES, 0)
    of_all = f" of {rows:,.0f} answers" if facts.result.settings.seeds.get(name) else ""
    for kind in kinds:
        if counts.get(kind) and (name, kind) != (facts.baseline, "untouched"):
            picks = dump_json({"run": clean_name(facts.name), "system": clean_name(name), "kind": kind})
            text = f"{counts[kind]:,} {kind if brief else KINDS[kind]}{of_all}"
            links += [", "] if links else []
            links.append(element("a", {"href": "#examples", "class": "to-examples", "data-picks": picks}, text))
    return links


# --- the question, and the answer with names and numbers


def ask_sentence(facts: RunFacts) -> str:
    """Write the question of the run, with short names."""
    tags = facts.result.settings.datasets
    brief = name_briefly([*tags, *facts.result.systems])
    data = list_names([f"{brief[tag] or 'the data'} ({count_things(count, 'example')})" for tag, count in tags.items()])
    where = f" on {data}" if tags else ""
    systems = facts.result.systems
    controls = set(facts.result.settings.controls)
    others = [name for name in systems if name != facts.baseline]
    others = [name for name in others if name not in controls] or others
    if facts.baseline is None or not others:
        return f"How well does {list_names(_name_all(systems))} do{where}?"
    asked = _name_all(others)
    verb = "does" if len(asked) == 1 else "do"
    return f"How {verb} {list_names(asked)} compare with {brief[facts.baseline]}{where}?"


def _name_all(names: list[str]) -> list[str]:
    """Name systems briefly; the settings of a sweep share one name."""
    return [write_briefly(joined, names) for joined in join_settings(names)]


def answer_sentence(facts: RunFacts, curves: Sequence[Curve] | None = None) -> str:
    """Write the result: the conclusion of the verdicts, or the numbers if there is no comparison."""
    result, key = facts.result, choose_quality(facts.result)
    concluded = conclude(result, curves) or describe_alone(result)
    if concluded:
        return concluded
    scored = [name for name in result.systems if math.isfinite(result.summary[name].get(key, math.nan))]
    if not scored:
        return "No row has a score: only tokens, times and errors were measured."
    told = [
        f"{name} has a {key.replace('_', ' ')} of {_write_score(facts, name, key)}"
        for name in scored[:_MAX_SYSTEMS_TOLD]
    ]
    return f"{'; '.join(told)}; there is {_explain_silence(facts)}, so no verdict."


def _explain_silence(facts: RunFacts) -> str:
    """Explain why there is no verdict."""
    comparison, unread = facts.result.comparison, facts.result.settings.unread
    if comparison is None and 0 < len(unread) < len(facts.result.systems):
        return "no common score of contexts and answers"
    if comparison is None or not comparison.verdicts:
        return "no second system with the same examples"
    if all(verdict.control for verdict in comparison.verdicts):
        return "no system other than the baseline and the controls"
    return "no score that measures quality"


def _write_score(facts: RunFacts, name: str, key: str) -> str:
    interval = facts.result.intervals.get(name, {}).get(key)
    value = facts.result.summary.get(name, {}).get(key, math.nan)
    if interval is not None and interval.known and not interval.mark:
        return f"{score(value)} {write_limits(interval, score)}"
    return score(value) if math.isfinite(value) else "not measured"
