"""Record the corpus anew: python -m tests.corpus [--check] [WORD ...] records the runs whose names hold a word.

Without words all runs are recorded. `--check` records nothing, and says which runs differ.
"""

from __future__ import annotations

import sys
import tempfile
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))


def main(arguments: list[str]) -> int:
    """Record or check, and say how long each run took."""
    from corpus.bench import Absent, make_run
    from corpus.record import RUNS, describe_difference, load_record, save_record

    words = [each for each in arguments if each != "--check"]
    record, differ = load_record(), 0
    for name in RUNS:
        if words and not any(word in name for word in words):
            continue
        started = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            try:
                made = make_run(name, Path(folder).resolve())
            except Absent as absent:
                print(f"{name}: left as it was, {absent}")
                continue
            except Exception as failure:
                traceback.print_exc()
                print(f"{name}: broke, {failure}")
                continue
        state = "as recorded"
        if name not in record or describe_difference(record[name], made):
            differ += 1
            state = describe_difference(record[name], made) if name in record else "new"
        print(f"{name}: {time.monotonic() - started:.1f} s, {state}", flush=True)
        record[name] = made
    if "--check" not in arguments:
        save_record({name: record[name] for name in RUNS if name in record})
    return int("--check" in arguments and differ > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
