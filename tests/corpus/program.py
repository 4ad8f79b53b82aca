"""A program that a `command:` system runs: it answers each line with one line."""

from __future__ import annotations

import json
import sys

for line in sys.stdin:
    example = json.loads(line)
    print(json.dumps({"context": example["context"].upper()[:400]}), flush=True)
