#!/bin/sh
# Makes the virtual environment given as $1 with xce (editable), its extras and the development tools.
set -eu
venv=$1

python=""
for candidate in ${PYTHON:-} python3 python3.13 python3.12 python3.11; do
    if command -v "$candidate" >/dev/null 2>&1 &&
        "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        python=$candidate
        break
    fi
done
if [ -z "$python" ]; then
    echo "setup: no Python 3.11 or newer found; install one, or name it: make PYTHON=/path/to/python3" >&2
    exit 2
fi

if [ ! -x "$venv/bin/python" ] || ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    rm -rf "$venv"
    if ! "$python" -m venv "$venv" 2>/dev/null; then
        # Debian ships venv apart from python3.
        rm -rf "$venv"
        if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
            echo "setup: $python has no venv module; installing python3-venv"
            apt-get update -qq && apt-get install -y -qq python3-venv >/dev/null
            "$python" -m venv "$venv"
        else
            echo "setup: $python cannot make a virtual environment; run: apt-get install python3-venv" >&2
            exit 2
        fi
    fi
fi

echo "setup: installing into $venv (first time only)"
quiet="-q --disable-pip-version-check --no-input"
# Dependency groups need pip 25.1.
"$venv/bin/python" -m pip install $quiet --upgrade 'pip>=25.1'
"$venv/bin/python" -m pip install $quiet --editable '.[report,controller,ec2,postgresql,dask]' --group dev
