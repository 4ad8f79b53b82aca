"""Offline verification of a bundle: check hashes, then recompute numbers from the rows, and rows from their texts.

Replies, latencies, prices and versions are inputs, which cannot be recomputed. If someone changes them and seals the
bundle again, the signature shows the change; a changed example also differs from the dataset itself (`--data`).
"""

from __future__ import annotations

import hashlib
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from context_bench._version import __version__
from context_bench.claims.bundle import Window, canonical, hash_bytes, hash_value
from context_bench.claims.reading import Bundle, Damage
from context_bench.claims.recompute import Recomputer, find_unlike
from context_bench.claims.replays import Sessions
from context_bench.claims.texts import Texts, join_answer
from context_bench.compare.pairing import read_value
from context_bench.compare.verdicts import choose_baseline
from context_bench.core.call import Outcome
from context_bench.core.examples import Item
from context_bench.core.row import Job
from context_bench.errors import ContextBenchError, printable
from context_bench.monitors.looks import Decisions, LookOrder, draw_example
from context_bench.results import EvalResult, EvalRow
from context_bench.settings import RunSettings, read_settings
from context_bench.store.records import unpack_processed
from context_bench.summary import rebuild_metrics, summarize
from context_bench.text import count_things, dump_json
from context_bench.text.golds import list_scoring_fields

MAX_SHOWN = 20
WITHHELD = "(withheld)"  # replaces a withheld reply, because the summary counts empty ones
LIMITS = (
    "replies, latencies, prices, versions and settings are taken as recorded: only a signature "
    "(--signed-by) shows whether they were changed and sealed again; --data also finds changed examples"
)
_INVALID_RUN = (
    ContextBenchError,
    RecursionError,
    TypeError,
    ValueError,
    LookupError,
    AttributeError,
    ArithmeticError,
)


@dataclass
class Verification:
    """Result of verifying a bundle."""

    path: Path
    root: str = ""
    run: str = ""
    private: bool = False
    datasets: dict[str, Any] = field(default_factory=dict)
    signature: str = "not signed"
    # numbers of recomputed, equal values by kind
    recomputed: Counter[str] = field(default_factory=Counter)
    missing: Counter[str] = field(default_factory=Counter)  # numbers of values that could not be recomputed, by reason
    differs: list[str] = field(default_factory=list)  # one sentence for each difference
    notes: list[str] = field(default_factory=list)
    # the run with its recomputed numbers; None if they could not be recomputed
    result: EvalResult | None = None

    @property
    def code(self) -> int:
        """Exit code: 1 if something differs, 4 if something could not be recomputed, else 0."""
        return 1 if self.differs else 4 if self.missing else 0

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        shown = {key: value for key, value in vars(self).items() if key not in ("path", "result")}
        return {"file": self.path.name, "verdict": self.word, **shown, "limits": LIMITS}

    @property
    def word(self) -> str:
        return {0: "all recomputed", 1: "differs", 4: "not all recomputed"}[self.code]

    def render(self) -> str:
        """Return the result as text."""
        lines = [f"{self.path.name}: {self.word}", f"  run {self.run}, root {self.root[:16]}…, {self.signature}"]
        lines += [f"  recomputed: {number:,} {what}" for what, number in self.recomputed.items()]
        lines += [f"  could not be recomputed ({number:,}): {what}" for what, number in self.missing.items()]
        lines += [f"  differs: {each}" for each in self.differs[:MAX_SHOWN]]
        if len(self.differs) > MAX_SHOWN:
            lines.append(f"  differs: {len(self.differs) - MAX_SHOWN:,} more")
        lines += [f"  {each}" for each in (*self.notes, LIMITS)]
        # Names in an untrusted bundle may contain control characters.
        return "".join(f"{'  ' * line.startswith('  ')}{printable(line)}\n" for line in lines)


def verify_bundle(
    path: Path, data: Path | None = None, signer: Path | None = None, *, keep_rows: bool = False
) -> Verification:
    """Verify a bundle.

    Args:
        path: File of the bundle.
        data: Folder with the datasets, or with bundles with texts.
        signer: PEM file with the public key that must have signed the bundle.
        keep_rows: Keep the rows in the result.

    Raises:
        DataError: The file is not a bundle.
    """
    with Bundle(path) as bundle, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = Verification(path, bundle.root, str(bundle.manifest.get("run")), bundle.private)
        found.differs += bundle.damage
        try:
            found.signature = bundle.check_signature(signer)
        except Damage as error:
            found.signature = f"not validly signed{f' by {signer.name}' if signer else ''}"
            found.differs.append(str(error))
        if bundle.damage:
            found.notes.append("nothing was recomputed, because the contents differ from the sealed ones")
            return found
        found.recomputed["hashes of parts"] = len(bundle.manifest["parts"])
        try:
            _Check(bundle, found, data, [] if keep_rows else None).run()
        except Damage as error:
            found.differs.append(str(error))
        except _INVALID_RUN as error:
            found.differs.append(f"the contents are not a valid run: {type(error).__name__}: {error}")
    return found


class _Check:
    """Recomputation of one bundle, row by row."""

    def __init__(self, bundle: Bundle, found: Verification, data: Path | None, kept: list[EvalRow] | None) -> None:
        self._bundle, self._found, self._data, self._kept = bundle, found, data, kept
        self._run = bundle.read_json("run.json")
        self._config: dict[str, Any] = self._run["config"]
        self._settings = read_settings(self._config)
        self._seen: set[int] = set()
        self._digests: dict[str, set[bytes]] = {}
        self._row_counts: Counter[str] = Counter()
        self._looks = _LooksAgain(self._settings) if self._settings.looks else None

    def run(self) -> None:
        found = self._found
        if self._settings.version != __version__:
            made = f"the run was made by context-bench {self._settings.version}, this is {__version__}"
            found.notes.append(f"{made}: differences may come from the version")
        wanted, fields = self._read_examples()
        self._texts = Texts(self._data, self._settings, wanted)
        if self._bundle.private:
            examples = self._texts.examples.values()
            fields = Counter((str(each.get("dataset") or ""), list_scoring_fields(each)) for each in examples)
        self._recomputer = Recomputer(self._config, fields, Sessions(self._bundle), private=self._bundle.private)
        names = list(self._run["summary"])
        metrics = rebuild_metrics(self._settings.metrics)
        summary = summarize(self._read_rows(), names, metrics, self._config)
        result = EvalResult.from_summary(self._kept or [], summary, self._config, metrics, self._run["timing"])
        self._compare_summary(result)
        if self._looks is not None:
            found.differs += self._looks.compare()
            found.recomputed["interim looks"] = len(self._settings.looks["systems"])
        self._compare_lists()
        self._compare_data(wanted)
        found.recomputed += self._recomputer.counted
        found.missing += self._recomputer.missing
        found.result, found.datasets = result, self._run["datasets"]

    def _read_examples(self) -> tuple[set[str], Counter[tuple[str, tuple[str, ...]]]]:
        """Read the hashes of all examples if texts must be joined, and the fields that decide about scores."""
        wanted: set[str] = set()
        fields: Counter[tuple[str, tuple[str, ...]]] = Counter()
        for example in self._bundle.read_lines("examples.jsonl"):
            if self._bundle.private:
                wanted.add(example["sha256"])
            else:
                fields[str(example.get("dataset") or ""), tuple(list_scoring_fields(example))] += 1
                if self._data is not None:
                    wanted.add(hash_value(example))
        return wanted, fields

    def _read_rows(self) -> Iterator[EvalRow]:
        """Yield the recorded rows, and check each against its texts."""
        examples = self._bundle.read_lines("examples.jsonl")
        answers = self._bundle.read_lines("answers.jsonl")
        window = Window()
        for number, stored in enumerate(self._bundle.read_lines("rows.jsonl"), 1):
            digest, new = stored.pop("example"), stored.pop("new")
            row = EvalRow(**stored)
            if new:
                window.keep(digest, *self._read_item(digest, next(examples, None), row))
            if digest not in window:
                raise Damage(f"rows.jsonl: line {number} has an unknown example")
            answer = next(answers, _END)
            if answer is _END:
                raise Damage("answers.jsonl: fewer lines than rows.jsonl")
            self._note(row, number)
            for each in self._check_row(row, window[digest], answer):
                self._found.differs.append(f"{row.system} on {row.dataset} {row.example_id!r}: {each}")
            if self._looks is not None:
                self._looks.add(row, digest, window[digest])
            if self._kept is not None:
                self._kept.append(row)
            yield row
        if next(answers, _END) is not _END or next(examples, _END) is not _END:
            raise Damage("rows.jsonl: fewer lines than answers.jsonl or examples.jsonl")

    def _read_item(self, digest: str, example: Any, row: EvalRow) -> tuple[Item | None, int]:
        """Return an example (None if its texts are withheld) and its size in the window."""
        if example is None:
            raise Damage("examples.jsonl: fewer lines than rows.jsonl needs")
        self._digests.setdefault(row.dataset, set()).add(bytes.fromhex(digest))
        content = b"" if self._bundle.private else canonical(example)
        if digest != (example["sha256"] if self._bundle.private else hash_bytes(content)):
            raise Damage(f"examples.jsonl: the example {example.get('id')!r} is not that of its row")
        found = self._texts.examples.get(digest) if self._bundle.private else example
        return None if found is None else Item(found), len(content)

    def _note(self, row: EvalRow, number: int) -> None:
        self._row_counts[row.system] += 1
        if type(row.repeat) is not int or not 0 <= row.repeat < self._settings.repeats:
            raise Damage(f"rows.jsonl: line {number} is repeat {row.repeat!r} of {self._settings.repeats}")
        key = hashlib.blake2b(repr((row.system, row.dataset, row.example_id, row.repeat)).encode(), digest_size=8)
        identity = int.from_bytes(key.digest(), "big")
        if identity in self._seen:
            raise Damage(f"rows.jsonl: line {number} repeats a row of {row.system} on {row.example_id!r}")
        self._seen.add(identity)

    def _check_row(self, row: EvalRow, item: Item | None, answer: Any) -> Iterator[str]:
        missing = self._recomputer.missing
        row.response = WITHHELD if row.metadata.get("response_tokens") else ""
        if item is None:
            missing["rows with withheld texts (add them with --data DIR)"] += 1
            return
        if (item.example.get("id"), item.tag) != (row.example_id, row.dataset):
            yield f"its example is {item.example.get('id')!r} of {item.tag!r}"
        if answer is not None:
            joined = join_answer(answer, self._texts)
            if joined is None:
                missing["withheld replies, with their scores and counts"] += 1
                return
            answer = {**joined, "processed": unpack_processed(joined["processed"], item.example)}
            row.response = answer["processed"].get("response", "")
        yield from self._recomputer.check(row, item, answer)

    def _compare_summary(self, result: EvalResult) -> None:
        made = orjson.loads(dump_json({"summary": result.summary, "notes": result.notes, **result.describe_accuracy()}))
        recorded = {name: self._run[name] for name in made}
        numbers = {name: dict.fromkeys(values) for name, values in recorded["summary"].items()}
        for name, values in numbers.items():
            for key in values.keys() - made["summary"].get(name, {}).keys():
                self._found.missing[f"the number {key!r}: its metric is unknown here"] += 1
                made["summary"].setdefault(name, {})[key] = recorded["summary"][name][key]
                for part in ("notes", "intervals"):
                    if (value := ((recorded[part] or {}).get(name) or {}).get(key)) is not None:
                        made[part].setdefault(name, {})[key] = value
        for part, what in _SHOWN.items():
            if part == "notes" and self._bundle.private:
                continue  # notes quote replies and errors
            unlike = list(find_unlike(made[part] or {}, recorded[part] or {}, part))
            if worded := [each for each in unlike if _EXPLANATIONS.search(each[0])]:
                path, one, other = worded[0]
                shown = f"{count_things(len(worded), 'explanation')}, such as {path}: {other!r}, here {one!r}"
                self._found.notes.append(f"different wording in {shown}")
            unlike = [each for each in unlike if each not in worded]
            self._found.differs += [f"{path} is {other!r}, recomputed {one!r}" for path, one, other in unlike]
            if what and not unlike:
                self._found.recomputed[what] = _count_values(part, recorded[part])

    def _compare_lists(self) -> None:
        """Check that no row and no example is missing."""
        rows = sum(self._row_counts.values())
        if self._run["rows"] not in (None, rows):
            self._found.differs.append(f"the run has {self._run['rows']:,} rows, the bundle {rows:,}")
        wanted = self._settings.repeats * sum(map(len, self._digests.values()))
        if self._run["status"] != "done":
            self._found.notes.append("the run was stopped before its end: its systems may not have the same examples")
        elif not self._settings.looks:
            uneven = {name: self._row_counts[name] for name in self._run["summary"] if self._row_counts[name] != wanted}
            self._found.differs += [f"{name} has {n:,} rows instead of {wanted:,}" for name, n in uneven.items()]
        for tag in dict.fromkeys((*self._run["datasets"], *self._digests)):
            found = sorted(each.hex() for each in self._digests.get(tag, ()))
            known = {"examples": len(found), "sha256": hashlib.sha256("".join(found).encode()).hexdigest()}
            if known != self._run["datasets"].get(tag) or len(found) != self._settings.datasets.get(tag):
                self._found.differs.append(
                    f"the examples of {tag or 'data without a tag'} do not match their recorded hash and number"
                )

    def _compare_data(self, wanted: set[str]) -> None:
        """Check that the examples occur in the datasets of the folder."""
        if self._data is None:
            return
        texts, problems = self._texts, [*self._texts.problems]
        lost, names = len(wanted - texts.examples.keys()), ", ".join(texts.datasets)
        if not names and not problems:
            problems.append(f"no dataset of the run was found in {self._data}")
        elif lost and not self._settings.command:
            problems.append(
                f"{count_things(lost, 'example')} not found; a run in Python does not record its parameters"
            )
        elif lost and not problems:
            self._found.differs.append(f"{count_things(lost, 'example')} of the bundle not found in {names}")
        elif names and not lost:
            self._found.recomputed["examples found in the data"] = len(wanted)
        self._found.missing.update(f"data: {each}" for each in problems)


class _LooksAgain:
    """Recomputation of the interim looks from the rows, in the order of the run."""

    def __init__(self, settings: RunSettings) -> None:
        self._settings, looks = settings, settings.looks
        self._names = [name for name in settings.systems if name != settings.twin]
        baseline = choose_baseline(self._names, settings.baseline, settings.controls)
        self._decisions = Decisions(
            LookOrder(range(looks["planned"]), looks["sizes"], looks["seed"]),  # type: ignore[arg-type] # their number
            list(looks["systems"]),
            str(baseline),
            read_value("score", settings.score_field, 0.0),
            margin=settings.margin,
            repeats=settings.repeats,
            fixed_groups=settings.fixed_groups,
            keep_apart=settings.score_field == "score",
            stop=lambda _: None,
            stop_all=lambda: None,
        )
        self._places: dict[str, int] = {}
        self._drawn: dict[str, bytes] = {}
        self._in_order = True

    def add(self, row: EvalRow, digest: str, item: Item | None) -> None:
        """Add a row; a new example gets the next place."""
        if digest not in self._places and item is not None:
            drawn = draw_example(item, self._settings.looks["seed"])
            self._in_order &= self._drawn.get(item.tag, b"") <= drawn
            self._drawn[item.tag] = drawn
        place = self._places.setdefault(digest, len(self._places))
        self._decisions.on_row(Job(place, None, None), row, Outcome())  # type: ignore[arg-type] # the place alone counts

    def compare(self) -> Iterator[str]:
        """Yield the differences between the recomputed and the recorded looks."""
        if not self._in_order:
            yield "the order of the examples does not follow from the seed of the interim looks"
        made = self._decisions.describe(self._settings.systems, self._settings.stopped_systems)
        made, recorded = (orjson.loads(dump_json(each)) for each in (made, self._settings.looks))
        yield from (f"{path} is {two!r}, recomputed {one!r}" for path, one, two in find_unlike(made, recorded, "looks"))


_END = object()
# Sentences that are written from the numbers; another version may choose other words.
_EXPLANATIONS = re.compile(r"^notes\.|\.(reason|notes?)\b")
_SHOWN = {"summary": "numbers of the summary", "intervals": "intervals", "comparison": "verdicts", "notes": ""}


def _count_values(part: str, recorded: Any) -> int:
    if part == "comparison":
        return len((recorded or {}).get("verdicts", ()))
    return sum(len(values) for values in (recorded or {}).values())
