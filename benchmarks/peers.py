"""The throughput job done by other evaluation harnesses, where they are installed, beside ours and a bare aiohttp loop.

Everyone sends the same messages to a server that answers at once, scores each reply and says how many are right.
Each runs in a process of its own, in turns, on one core; the server has the other. Only the evaluation call is timed:
imports, the making of the dataset and a first small evaluation come before. What is kept differs: context-bench
stores every reply and row, inspect-ai writes its log, lm-eval keeps its samples in memory, the bare loop nothing.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.mock_server import serving
from benchmarks.throughput import CONCURRENCY, bare, examples, ours, timed

EXAMPLES = 500
WARM_UP = 100
ROUNDS = 3
SPENT = "spent.json"
SECONDS = 300
"""A harness that takes longer has failed."""

Spent = tuple[float, float]
"""Wall and CPU seconds."""

Job = Callable[[], float]
"""An evaluation, ready to run; returns the share of replies that were judged right."""

PACKAGES = {"inspect-ai": "inspect-ai openai", "lm-eval": "'lm-eval[api]'"}
"""What to install for each peer."""


def bare_job(url: str, data: list[dict[str, Any]], _folder: Path) -> Job:
    """The loop that only sends and reads; it judges nothing."""

    def run() -> float:
        asyncio.run(bare(url, data))
        return 1.0

    return run


def our_job(url: str, data: list[dict[str, Any]], _folder: Path) -> Job:
    """The whole pipeline of context-bench, store on."""

    def run() -> float:
        return sum(row.scores.get("contains", 0.0) for row in ours(url, data).rows) / len(data)

    return run


def inspect_job(url: str, data: list[dict[str, Any]], folder: Path) -> Job:
    """A task of inspect-ai with its `includes` scorer and its log in the folder, without the events for a live view."""
    from inspect_ai import Task
    from inspect_ai import eval as inspect_eval
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ChatMessageSystem, ChatMessageUser, get_model
    from inspect_ai.scorer import includes

    samples = [
        Sample(
            id=one["id"],
            input=[ChatMessageSystem(content=one["context"]), ChatMessageUser(content=one["question"])],
            target=one["answer"],
        )
        for one in data
    ]
    task = Task(dataset=MemoryDataset(samples), scorer=includes())
    model = get_model("openai-api/mock/mock", base_url=f"{url}/v1", api_key="none")

    def run() -> float:
        (log,) = inspect_eval(
            task,
            model=model,
            max_connections=CONCURRENCY,
            display="none",
            log_dir=str(folder),
            log_realtime=False,
        )
        if log.status != "success" or log.results is None:
            raise RuntimeError(f"the evaluation ended with {log.status}")
        return float(log.results.scores[0].metrics["accuracy"].value) * log.results.completed_samples / len(data)

    return run


def lm_eval_job(url: str, data: list[dict[str, Any]], folder: Path) -> Job:
    """A `generate_until` task of lm-eval on a local file: the answer is cut out by a pattern and must match.

    Fields are given by name and not as templates, which would be compiled anew for every example.
    """
    import lm_eval
    from lm_eval.api.registry import get_model
    from lm_eval.tasks import TaskManager

    path = folder / f"{len(data)}.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in data), encoding="utf-8")
    cut = [{"function": "regex", "regex_pattern": r"answer is (\w+)"}, {"function": "take_first"}]
    config = {
        "task": "capitals",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(path)}},
        "test_split": "test",
        "output_type": "generate_until",
        "description": "context",
        "doc_to_text": "question",
        "doc_to_target": "answer",
        "generation_kwargs": {"until": [], "max_gen_toks": 64},
        "filter_list": [{"name": "cut", "filter": cut}],
        "metric_list": [{"metric": "exact_match"}],
        "num_fewshot": 0,
    }
    tasks = TaskManager(include_defaults=False).load([config])
    model = get_model("local-chat-completions")(
        model="mock", base_url=f"{url}/v1/chat/completions", num_concurrent=CONCURRENCY
    )

    def run() -> float:
        found = lm_eval.evaluate(lm=model, task_dict=tasks, apply_chat_template=True, fewshot_as_multiturn=True)
        scores = found["results"]["capitals"]
        return float(scores["exact_match,cut"]) * len(found["samples"]["capitals"]) / len(data)

    return run


JOBS = {"bare aiohttp": bare_job, "context-bench": our_job, "inspect-ai": inspect_job, "lm-eval": lm_eval_job}


def work(name: str, url: str) -> None:
    """Do one job in this process; leave the wall and CPU seconds of the evaluation in the current folder."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {0})
    data, folder = examples(EXAMPLES), Path.cwd()
    JOBS[name](url, data[:WARM_UP], folder)()
    job = JOBS[name](url, data, folder)
    right: list[float] = []
    spent = timed(lambda: right.append(job()))
    if right != [1.0]:
        raise RuntimeError(f"every reply is right, but {right[0]:.3f} of them were judged so")
    (folder / SPENT).write_text(json.dumps(spent), encoding="utf-8")


def measured(name: str, url: str) -> Spent:
    """Do one job in a process of its own, in a folder that goes away.

    Raises:
        RuntimeError: It failed; the last line that it wrote.
    """
    command = [sys.executable, "-m", "benchmarks.peers", name, url]
    with tempfile.TemporaryDirectory() as folder:
        streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
        try:
            done = subprocess.run(command, cwd=folder, env=environment(folder), timeout=SECONDS, **streams)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"not done after {SECONDS} s") from None
        if done.returncode:
            raise RuntimeError((done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1][:200])
        wall, cpu = json.loads((Path(folder) / SPENT).read_text(encoding="utf-8"))
    return wall, cpu


def environment(folder: str) -> dict[str, str]:
    """Ours, without settings that change what a harness does; offline, no telemetry, caches in the folder."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("INSPECT_", "LMEVAL_", "HF_"))}
    return {
        **kept,
        "PYTHONPATH": str(Path(__file__).parents[1]),
        "HF_HOME": folder,
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "DO_NOT_TRACK": "1",
        "TQDM_DISABLE": "1",
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
        "XDG_CACHE_HOME": folder,
        "XDG_DATA_HOME": folder,
    }


def installed(peer: str) -> bool:
    """Whether a peer is there; a line is printed either way."""
    try:
        print(f"{peer} {version(peer)}")
    except PackageNotFoundError:
        print(f"{peer}: not installed (pip install {PACKAGES[peer]} to include it)")
        return False
    return True


def show(name: str, rounds: list[dict[str, Spent]]) -> None:
    """Print the medians of one harness."""
    taken = [(one[name], one["bare aiohttp"]) for one in rounds if name in one]
    if not taken:
        return
    rate = EXAMPLES / statistics.median(own[0] for own, _ in taken)
    cpu = statistics.median(own[1] for own, _ in taken) / EXAMPLES * 1e6
    ratio = statistics.median(base[0] / own[0] for own, base in taken)
    print(f"{name:14} {rate:7,.0f}/s  {cpu:7,.0f} µs CPU an example   {ratio:.3f} times a bare aiohttp loop")


def main() -> None:
    """Print rate, CPU and ratio of each; or, with a name and a URL, do that job."""
    if len(sys.argv) == 3:
        work(*sys.argv[1:])
        return
    names = ["bare aiohttp", "context-bench", *(peer for peer in PACKAGES if installed(peer))]
    rounds: list[dict[str, Spent]] = []
    with serving(core=1) as url:
        for _ in range(ROUNDS):
            rounds.append({})
            for name in list(names):
                try:
                    rounds[-1][name] = measured(name, url)
                except RuntimeError as error:
                    if name not in PACKAGES:
                        raise
                    print(f"{name}: failed ({error})", flush=True)
                    names.remove(name)
    print(f"{EXAMPLES} examples of 2 KB at concurrency {CONCURRENCY}, medians of {ROUNDS} rounds; imports not timed")
    for name in names:
        show(name, rounds)


if __name__ == "__main__":
    main()
