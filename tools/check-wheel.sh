#!/bin/sh
# Builds sdist and wheel, installs the wheel in an empty environment elsewhere, and runs it there.
# $1: a Python that has the build module.
set -eu
python=$(realpath -s "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

"$python" -m build --outdir "$work/dist" . >"$work/build.log" 2>&1 || {
    cat "$work/build.log" >&2
    exit 1
}
"$python" tools/wheel_contents.py "$work"/dist/*.whl

"$python" -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -q --disable-pip-version-check --no-input "$work"/dist/*.whl
cd "$work"
"$work/venv/bin/xce" --version
"$work/venv/bin/xce" demo --out "$work/demo" --quiet
"$work/venv/bin/xce" audit verify "$work/demo/events.db"
echo "wheel: installed and ran outside the checkout"
