"""Measurement of claims: from a bundle, from a recorded run, or by a function that the claim names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from context_bench.claims.claim import Claim
from context_bench.claims.judging import Measured, measure, read_measured
from context_bench.claims.verify import Verification, verify_bundle
from context_bench.errors import ContextBenchError, UsageError
from context_bench.refs import import_code
from context_bench.results import EvalResult

NO_RUN = "not measured: pass --run to run its function"


class Measurer:
    """Measurer of claims; a measurement that several claims share is made only once.

    Args:
        given: Result on which all claims are checked, if any.
        run: Whether to run the functions that claims name.
        data: Folder with the records of public datasets.
    """

    def __init__(self, given: EvalResult | None = None, *, run: bool = False, data: Path | None = None) -> None:
        self._given, self._run, self._data = given, run, data
        self._values: dict[str, dict[str, Any] | str] = {}
        self._bundles: dict[Path, Verification] = {}

    def measure(self, claim: Claim) -> Measured:
        """Measure a claim; problems are part of the result."""
        if claim.missing:
            return Measured()
        if self._given is not None:
            return measure(claim, self._given, self._given.rows, self._given.settings.run or "a run")
        found = self._run_claim(claim) if claim.run and self._run else Measured(problem=NO_RUN)
        if found.problem and claim.bundle:
            return self._read_bundle(claim)
        if found.problem == NO_RUN and not claim.run:
            return Measured(problem="the claim names neither a bundle nor a function to run")
        return found

    def _run_claim(self, claim: Claim) -> Measured:
        file, _, name = claim.run.partition(":")
        if claim.run not in self._values:
            try:
                self._values[claim.run] = _load_function(claim.folder / file, name)(self._data)
            except ContextBenchError as error:
                self._values[claim.run] = str(error)
        values = self._values[claim.run]
        if isinstance(values, str):
            return Measured(problem=values)
        return read_measured(values.get(claim.id, values), claim, f"run by {claim.run}")

    def _read_bundle(self, claim: Claim) -> Measured:
        path = claim.folder / claim.bundle
        if path not in self._bundles:
            self._bundles[path] = verify_bundle(path, self._data, keep_rows=True)
        found = self._bundles[path]
        if found.code == 1 or found.result is None:
            return Measured(problem=f"{claim.bundle} is not valid: {found.differs[0]}")
        hashes = [each["sha256"] for each in found.datasets.values()]
        how = f"{claim.bundle}, {found.word}"
        data = hashes[0] if len(hashes) == 1 and not claim.run else ""  # the function reports the hash of its own data
        return measure(claim, found.result, found.result.rows, how, data)


def _load_function(path: Path, name: str) -> Callable[[Path | None], dict[str, Any]]:
    if not path.is_file():
        raise UsageError(f"{path}: no such file; `run` must be FILE.py:function, relative to the file of claims")
    found = getattr(import_code(str(path)), name, None)
    if not callable(found):
        raise UsageError(f"{path} has no function {name!r}")
    return found  # type: ignore[no-any-return]
