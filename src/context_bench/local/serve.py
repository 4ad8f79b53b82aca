"""The process of a local model, started by `ModelProcess`; this file needs nothing else of the package.

The process reads its settings from stdin as one line of JSON and writes one line to stdout: its address, or why it
cannot serve. It ends when its stdin closes or its parent changes, so that it does not survive a `kill -9` of the
parent.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import Any, NoReturn

REPLY_TOKENS = 1024
"""Default limit of a reply: a small model that repeats itself would otherwise fill its whole context."""

_ERRORS_ONLY = 1


def main() -> NoReturn:
    """Serve until the parent is gone."""
    parent = os.getppid()
    report = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # output of the native code must not be taken for the report
    settings = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    try:
        server = _start(settings)
        outcome = {"url": server.listening_address}
    except Exception as error:  # noqa: BLE001 - whatever it is, the parent says it
        outcome = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(outcome), file=report, flush=True)
    while "url" in outcome and os.getppid() == parent:
        time.sleep(1.0)
    os._exit(0)


def _end_with_stdin() -> NoReturn:
    while sys.stdin.buffer.read(1):
        pass
    os._exit(0)


def _start(settings: dict[str, Any]) -> Any:
    """Start the native server: one request at a time and no cache, so a reply depends only on its request."""
    os.environ["GGML_NO_BACKTRACE"] = "1"  # otherwise a crash starts a debugger, if there is one
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = settings["model"]
    params.model_alias = {settings["name"]}
    params.hostnames = [settings["host"]]
    params.port = settings["port"]
    params.api_keys = [settings["key"]] if settings["key"] else []
    params.n_ctx = settings["context"]
    params.n_predict = REPLY_TOKENS
    params.n_parallel = 1
    params.cache_prompt = False
    params.cache_ram_mib = 0
    for threads in (params.cpuparams, params.cpuparams_batch):
        threads.n_threads = settings["threads"]
    params.verbosity = _ERRORS_ONLY
    params.offline = True
    params.cors_origins = ""  # web pages must not use it
    params.ui = params.endpoint_slots = params.warmup = False
    return xllamacpp.Server(params)


if __name__ == "__main__":
    main()
