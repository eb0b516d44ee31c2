#!/bin/sh
# Make a virtual environment and install this project into it: venv.sh FOLDER WHAT [pip options]
set -eu
python=${PYTHON:-python3}
folder=$1
shift
if ! command -v "$python" >/dev/null 2>&1; then
    echo "motamot needs Python 3.11 or newer; '$python' is not here. Install it, or say PYTHON=/path/to/python3." >&2
    exit 2
fi
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "motamot needs Python 3.11 or newer; $python is $("$python" --version)." >&2
    exit 2
fi
if [ ! -x "$folder/bin/python" ]; then
    # Debian keeps venv in a package of its own.
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
            apt-get update -qq && apt-get install -y -qq python3-venv >/dev/null
        else
            echo "Python's venv is missing; on Debian: sudo apt-get install python3-venv" >&2
            exit 2
        fi
    fi
    "$python" -m venv "$folder"
fi
echo "installing motamot and what it needs into $folder, about a minute" >&2
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
exec "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --editable "$@"
