#!/usr/bin/env bash
# Installs what the end-to-end tests drive: code-server (the real VS Code workbench, served to a browser) into a cache folder,
# and Chromium with a font from Debian where they are missing. Node.js 24, npm and playwright-core are the project's own
# (`make setup`). No package's install script runs, so what npm's settings say about them does not matter.
#
#   eval "$(tests/e2e/install-workbench.sh)"     # standard output is shell assignments only; the first time takes about a minute
#
# CUVIL_E2E_HOME       the cache folder (default ${XDG_CACHE_HOME:-$HOME/.cache}/cuvil-e2e)
# CUVIL_E2E_CHROMIUM   a Chromium to use in place of Debian's /usr/bin/chromium
set -euo pipefail
umask 022

# To move to another version take both lines from: npm view code-server@VERSION version dist.integrity
VERSION=4.139.1
INTEGRITY=sha512-fUYvJVdz4ZoVJfakGiGWXFMpF8K1ObsrpGvX17ZxNpKOzdNHs7lANT670JTr4ZhA8DnWqyvvmFG/d3HV9Yy6ew==

say() { printf 'install-workbench: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

[ "$(uname -sm)" = 'Linux x86_64' ] || die "only Linux on x86_64 is supported, this is $(uname -sm)"
root=$(cd "$(dirname "$0")/../.." && pwd -P)
export PATH=$root/.venv/bin:$PATH
command -v npm >/dev/null || die 'there is no npm; first: make setup'
case $(node --version) in v24.*) ;; *) die "code-server $VERSION needs Node.js 24, $(command -v node) is $(node --version); first: make setup" ;; esac

home=${CUVIL_E2E_HOME:-${XDG_CACHE_HOME:-${HOME:?neither CUVIL_E2E_HOME nor HOME is set}/.cache}/cuvil-e2e}
mkdir -p "$home"
home=$(cd "$home" && pwd -P)
code=$home/code-server-$VERSION
chromium=${CUVIL_E2E_CHROMIUM:-/usr/bin/chromium}

debian() {
  command -v apt-get >/dev/null || die "this is no Debian system: install what these packages give, by hand: $*"
  local as=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || die "as root: apt-get install -y --no-install-recommends $*"
    as=(sudo)
  fi
  say "Debian packages: $*"
  export DEBIAN_FRONTEND=noninteractive
  "${as[@]}" apt-get update -qq >&2 || say 'apt-get update had errors; going on with the lists there are'
  "${as[@]}" apt-get install -y -qq --no-install-recommends -o Dpkg::Use-Pty=0 "$@" >"$home/apt.log" 2>&1 ||
    { tail -n 20 "$home/apt.log" >&2; die "apt-get install failed, see $home/apt.log"; }
}

# Unpacks beside its place and moves it there when all is well, so that a run that was killed leaves nothing half done.
install() {
  local start=$SECONDS file sum
  new=$(mktemp -d "$home/.new.XXXXXX")
  trap 'rm -rf "$new"' EXIT
  export npm_config_ignore_scripts=true npm_config_audit=false npm_config_fund=false npm_config_update_notifier=false npm_config_loglevel=error
  # Set where an `npm run` calls this script: they are about that project, not about the folders here.
  unset npm_config_local_prefix npm_config_prefix npm_config_omit npm_config_include INIT_CWD NODE_ENV NODE_OPTIONS
  say "code-server $VERSION"
  file=$(cd "$new" && npm pack "code-server@$VERSION") || die 'npm could not get code-server'
  sum=sha512-$(sha512sum "$new/$file" | cut -d' ' -f1 | tr a-f A-F | basenc --base16 -d | base64 -w0)
  [ "$sum" = "$INTEGRITY" ] || die "code-server@$VERSION has the checksum $sum, not $INTEGRITY"
  mkdir "$new/code"
  tar -xzf "$new/$file" -C "$new/code" --strip-components=1 --no-same-owner
  # What its install script does, with exactly the versions of its three lock files. None of its native modules that would have
  # to be compiled is needed. (lib/vscode's lock file lacks a peer dependency that nothing here uses.)
  say "its dependencies"
  (cd "$new/code" && npm ci --omit=dev) >/dev/null
  (cd "$new/code/lib/vscode" && npm ci --omit=dev --legacy-peer-deps) >/dev/null
  (cd "$new/code/lib/vscode/extensions" && npm ci --omit=dev) >/dev/null
  node "$new/code/out/node/entry.js" --version | grep -qF "$VERSION" || die 'code-server does not start'
  rm -rf "$code"
  mv "$new/code" "$code"
  say "installed in $((SECONDS - start)) s: $code"
}

need=()
[ -x "$chromium" ] || need+=(chromium)
[ -e /usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf ] || need+=(fonts-dejavu-core)
if [ ${#need[@]} -gt 0 ] || [ ! -f "$code/out/node/entry.js" ]; then
  exec 9>"$home/.lock"
  flock 9 # a second run waits for the first, then finds all there
  [ ${#need[@]} -eq 0 ] || debian "${need[@]}"
  [ -f "$code/out/node/entry.js" ] || (install)
fi

printf 'export %s=%q\n' CUVIL_E2E_CODE_SERVER "$code/out/node/entry.js" CUVIL_E2E_CHROMIUM "$chromium"
