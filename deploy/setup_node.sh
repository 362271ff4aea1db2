#!/usr/bin/env bash
# Makes a node's virtual environment and installs this repository; `setup_node.sh gpu` with that extra of pyproject.toml.
# Runs on every `ray up` and may: what is there already is kept.
set -euo pipefail
cd "$(dirname "$0")/.."
extra=${1:-}

if ! python3 -c 'import ensurepip' 2>/dev/null; then
  sudo apt-get -o DPkg::Lock::Timeout=300 update
  sudo DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y python3-venv
fi
[ -x .venv/bin/python ] || python3 -m venv .venv
constraints=constraints.txt
if [ "$extra" = gpu ]; then
  # vLLM needs older versions of some packages than the tests run with; of Ray, all nodes must have the same.
  constraints=$(mktemp)
  grep '^ray==' constraints.txt > "$constraints"
fi
.venv/bin/python -m pip install --quiet --disable-pip-version-check -c "$constraints" -e ".${extra:+[$extra]}"
