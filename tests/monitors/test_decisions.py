"""Systems that end when their verdict is settled: real runs, in process and over HTTP, stored and resumed."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from command import called
from context_bench import EvalResult, OpenAIProxy, evaluate
from context_bench.errors import UsageError
from servers import Server, completion, reply

pytestmark = pytest.mark.long

CODE = """
from hashlib import sha256

def draw(example):
    return sha256(f"{example['dataset']} {example['id']}".encode()).digest()[0]

def lossy(example):
    return {**example, "context": "" if draw(example) < 100 else example["context"]}

def slightly(example):
    return {**example, "context": "" if draw(example) < 8 else example["context"]}

def same(example):
    return {**example, "context": example["context"] + " "}
"""
DATA = ("--dataset", "needle:length=300,n=300", "--score-field", "answer_in_context")
RUN = ("--system", "passthrough", "--system", "code.py:lossy", "--system", "code.py:slightly", *DATA)


def _examples(n: int, tag: str = "d", **more: Any) -> list[dict[str, Any]]:
    return [
        {"id": place, "context": f"the word is w{place}", "answer": f"w{place}", "dataset": tag, **more}
        for place in range(n)
    ]


def _loses(share: int, name: str) -> Any:
    def lose(example: dict[str, Any]) -> dict[str, Any]:
        drawn = sha256(f"{name} {example['dataset']} {example['id']}".encode()).digest()[0]
        return {**example, "context": "" if drawn < share else example["context"]}

    lose.__name__ = name
    return lose


def keep(example: dict[str, Any]) -> dict[str, Any]:
    """The baseline."""
    return example


def held(original: dict[str, Any], processed: dict[str, Any]) -> float:
    """Whether the word is still there."""
    return float(f"{original['answer']}!" in f"{processed['response']}!")


def _evaluate(systems: list[Any], examples: Any, **more: Any) -> EvalResult:
    more = {"baseline": "keep", "progress": False, "score_field": "held", "evaluators": [held], **more}
    return evaluate([keep, *systems], examples, stop_when_decided=True, **more)


def test_a_large_difference_stops_early_from_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text(CODE)
    done = called(*RUN, "--stop-when-decided", "--out", "result.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "result.json").read_text())
    looked, config = result["config"]["looks"], result["config"]
    assert (looked["planned"], looked["sizes"], looked["looks"]) == (300, [60, 120, 180, 240, 300], 5)
    lossy, slightly = (looked["systems"][f"code.py:{name}"] for name in ("lossy", "slightly"))
    # 39% lost: settled at the first look; 3% lost: neither equivalent nor worse before the end
    assert (lossy["look"], lossy["settled"], lossy["verdict"]["word"]) == (1, True, "worse")
    assert 150 <= lossy["not_run"] <= 240  # what was in flight is finished
    assert (slightly["examples"], slightly["not_run"]) == (300, 0)
    assert looked["not_run"] == {"passthrough": 0}
    assert config["stopped"] is None  # it came to its end
    verdicts = {each["name"]: each for each in result["comparison"]["verdicts"]}
    assert verdicts["code.py:lossy"]["n"] == 60
    assert verdicts["code.py:lossy"]["interval"]["method"] == "5 looks"
    assert f"code.py:lossy: worse at look 1; {lossy['not_run']} examples were not run" in done.stderr
    shown = called("runs", "show", "last", "--wide", cwd=tmp_path).stdout
    assert "stopped when decided: 5 looks, at 60, 120, 180, 240, 300 examples in random order (seed 0)" in shown
    assert f"code.py:lossy: worse at look 1, after 60 of 300; {lossy['not_run']} examples were not run." in shown


def test_the_gate_goes_by_the_looks(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text(CODE)
    flags = ("--system", "passthrough", *DATA, "--stop-when-decided", "--no-store", "--quiet")
    gate = ("--fail-if", "verdict is worse")
    assert called("--system", "code.py:lossy", *flags, *gate, cwd=tmp_path).returncode == 1
    assert called("--system", "code.py:same", *flags, *gate, cwd=tmp_path).returncode == 0
    done = called("--system", "code.py:slightly", *flags, *gate, "-n", "40", cwd=tmp_path)
    assert done.returncode == 4, done.stderr


def test_a_resumed_run_takes_the_same_looks(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text(CODE)
    found = []
    for more in ((), ("--resume",), ("--resume", "--max-workers", "4"), ("--resume", "--seed", "1")):
        done = called(*RUN, "--stop-when-decided", "--quiet", "--output", "json", *more, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout))
    first, again, wide, other = [found[k]["comparison"]["verdicts"] for k in range(4)]
    assert first == again == wide
    assert found[1]["config"]["reused"] == len(found[1]["rows"]) > 0
    assert first != other  # another seed, another order
    read = EvalResult.from_json(json.dumps(found[0]))
    assert read.comparison is not None
    assert [each.to_dict() for each in read.comparison.verdicts] == first


def test_controls_and_baseline_go_on_until_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text(CODE)
    systems = ("--system", "passthrough", "--system", "closed-book", "--system", "code.py:lossy")
    flags = (*systems, *DATA, "--stop-when-decided", "--quiet", "--output", "json", "--no-store")
    alone = json.loads(called(*flags, cwd=tmp_path).stdout)["config"]["looks"]
    assert alone["systems"].keys() == {"code.py:lossy"}  # a control is not judged, and corrects nothing
    assert min(alone["not_run"].values()) > 100
    both = json.loads(called(*flags, "--system", "code.py:slightly", cwd=tmp_path).stdout)["config"]["looks"]
    assert both["not_run"] == {"passthrough": 0, "closed-book": 0}


def test_what_is_made_of_the_run_later_takes_no_account_of_the_looks_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text(CODE)
    flags = ("--system", "passthrough", "--system", "code.py:lossy", *DATA, "--stop-when-decided", "--quiet")
    assert called(*flags, cwd=tmp_path).returncode == 0
    compared = called("compare", "last", cwd=tmp_path)
    assert "--stop-when-decided" in compared.stderr
    scored = called("score", "last", "--output", "json", "--quiet", cwd=tmp_path)
    result = json.loads(scored.stdout)
    assert "looks" not in result["config"]
    assert result["comparison"]["verdicts"][0]["interval"]["method"] == "paired t"
    assert any("--stop-when-decided" in note for note in result["comparison"]["notes"])


def test_datasets_weigh_the_same_and_nothing_is_said_by_dataset() -> None:
    examples = [*_examples(60, "small"), *_examples(240, "large")]
    result = _evaluate([_loses(120, "lossy")], examples)
    looked = result.config["looks"]
    assert looked["sizes"] == [60, 120, 180, 240, 300]
    assert result.comparison is not None
    assert (result.comparison.metric, result.comparison.by_dataset) == ("macro_score", {})
    (verdict,) = result.comparison.verdicts
    size = looked["systems"]["lossy"]["examples"]
    counted = [row for row in result.rows if row.system == "lossy"][:size]
    means = [[row.scores["score"] for row in counted if row.dataset == tag] for tag in ("small", "large")]
    assert verdict.difference == pytest.approx(sum(sum(own) / len(own) for own in means) / 2 - 1)
    assert verdict.word == "worse"


def test_repeats_and_documents() -> None:
    examples = [{**each, "meta": {"group": each["id"] // 4}} for each in _examples(200)]
    result = _evaluate([_loses(120, "lossy")], examples, repeats=2)
    assert result.comparison is not None
    (verdict,) = result.comparison.verdicts
    assert (verdict.word, verdict.n % 4) == ("worse", 0)
    assert verdict.groups == verdict.n // 4
    assert result.config["looks"]["systems"]["lossy"]["not_run"] >= 60


def test_a_context_and_an_answer_stop_nobody() -> None:
    """They have no score in common: a difference between the two is no verdict, however large it is."""

    def wrong(example: dict[str, Any]) -> dict[str, Any]:
        return {"response": "wrong"}

    result = evaluate([keep, wrong], _examples(100), baseline="keep", progress=False, stop_when_decided=True)
    assert len(result.rows) == 200
    assert result.comparison is None


def test_over_http_nothing_more_is_sent() -> None:
    examples = [{"id": n, "context": "x", "question": "q", "answer": "yes", "dataset": "d"} for n in range(200)]
    with Server(completion("yes")) as right, Server(completion("no")) as wrong, Server(reply(401)) as closed:
        names = {"right": right, "wrong": wrong, "closed": closed}
        systems = [OpenAIProxy(server.url, name=name) for name, server in names.items()]
        with pytest.warns(UserWarning, match="closed was stopped after its first request"):
            result = evaluate(
                systems, examples, baseline="right", progress=False, stop_when_decided=True, max_workers=4
            )
        asked = {name: len(server.chats) for name, server in names.items()}
    looked = result.config["looks"]["systems"]
    assert (looked["wrong"]["look"], looked["wrong"]["verdict"]["word"]) == (1, "worse")
    # of 200 the first look has 40; what was in flight is finished, and a system that does not work holds nobody up
    assert 40 <= asked["wrong"] < 150
    assert asked["right"] < 200
    assert asked["closed"] == 1
    assert not looked["closed"]["settled"]
    assert result.config["stopped_systems"].keys() == {"closed"}


def test_part_of_the_result_has_no_looks() -> None:
    result = _evaluate([_loses(120, "lossy")], [*_examples(100, "x"), *_examples(100, "y")])
    part = result.filter(dataset="x")
    assert "looks" not in part.config
    assert part.comparison is not None
    assert part.comparison.verdicts[0].interval.method == "paired t"
    other = result.compare(margin=0.3)
    assert other is not None
    assert any("--stop-when-decided" in note for note in other.notes)


@pytest.mark.parametrize("systems", [[], ["closed-book"]])
def test_there_must_be_something_to_decide(systems: list[Any]) -> None:
    with pytest.raises(UsageError, match="must have a baseline and a system that is compared with it"):
        _evaluate(systems, _examples(20), baseline=None)
