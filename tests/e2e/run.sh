#!/usr/bin/env bash
# The suites that need a browser: the panels' bundle in Chromium, then the packaged extension in the real VS Code workbench.
#
#   tests/e2e/run.sh                    both
#   tests/e2e/run.sh tests/e2e/X.mjs    these files only
set -euo pipefail
cd "$(dirname "$0")/../.."
export PATH=$PWD/.venv/bin:$PATH
assignments=$(tests/e2e/install-workbench.sh)
eval "$assignments"
npm run --silent package >/dev/null
if [ $# -eq 0 ]; then
  node --test --test-concurrency=1 webview/tests/browser/*.spec.mjs
  set -- tests/e2e/*.spec.mjs
fi
node --test --test-concurrency=1 "$@"
