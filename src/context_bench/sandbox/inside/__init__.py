"""Code that runs inside the sandbox, in an interpreter with only the standard library.

The host sends these modules compiled (see `context_bench.sandbox.isolation`). To start fast they import
little: `typing` alone costs half as much as the start of Python, and `os` a quarter.
"""
