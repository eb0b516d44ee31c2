#!/bin/sh
# The Python peers of `python -m bench.relay`, in an environment of their own: what they need is not what we need.
set -eu
python=${PYTHON:-python3}
[ -x .venv-bench/bin/python ] || "$python" -m venv .venv-bench
exec .venv-bench/bin/python -m pip install --quiet --disable-pip-version-check --group bench-http
