#!/bin/sh
# Builds the wheel, installs it into a fresh environment of the given interpreter, and runs the suite there.
set -eu
rm -rf "$VENV"
"$PYTHON" -m venv "$VENV"
pip="$VENV/bin/python -m pip --disable-pip-version-check --quiet"
$pip install -c constraints.txt -r requirements-dev.txt
wheels=$(mktemp -d)
trap 'rm -rf "$wheels"' EXIT
"$VENV/bin/python" -m build --wheel --no-isolation --outdir "$wheels" . >/dev/null
$pip install -c constraints.txt "$(ls "$wheels"/*.whl)[all]"
"$VENV/bin/python" -m pytest "$@"
rm -rf "$VENV"
