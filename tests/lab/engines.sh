# shellcheck shell=bash
# What tests/lab/docker, tests/lab/podman and tests/lab/podman-user share: packages, a mount namespace, an image, containers. Sourced, not run.
#
# The namespace has a pure cgroup v2 tree, whatever the machine has, and its own folders below /run, so a daemon of the
# machine is neither used nor disturbed. In it the states of runc and crun have the paths of production. It outlives a
# restart of a daemon, as a host does, and all labs of one GATEWREN_LAB share it: a helper in it reaches all containers.
# shellcheck source-path=SCRIPTDIR source=../lib.sh
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../lib.sh"

engine=${0##*/}
engines=${GATEWREN_LAB:-/tmp/gatewren-lab}/engines
lab=$engines/$engine
socket=$lab/$engine.sock
marker=$engines/.gatewren-lab # without it `down` touches nothing
keeper=$engines/keeper        # the process id of the namespace's first process
# Below /run, each an empty folder in the namespace: the daemons and the runtimes keep their states there.
own_folders=(docker containerd crun runc containers libpod user)
image=gatewren-lab       # busybox, the users root and app (1000), and the program `processes`
bare_image=gatewren-bare # the program `processes` and nothing else
names=(alpha beta)
# The first process of a container reaps and ends on SIGTERM.
init='trap "exit 0" TERM; while :; do sleep 1 & wait; done'

# main ARGUMENT...: the verbs of both labs. The script that sources this file defines client (the engine's command line
# client, in the namespace), start_daemon, stop_daemon SIGNAL, load_image NAME FILE, and remove_leftovers (ends containers
# without a daemon).
main() {
    local verb=${1-}
    shift || true
    case $verb in
    up) up ;;
    status) status ;;
    restart) restart "$@" ;;
    run) run_container "$@" ;;
    cli) client "$@" ;;
    in) inside "$@" ;;
    down) down ;;
    *) sed -n '2,/^# shellcheck/{/^# shellcheck/d;s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
    esac
}

# Two `up` at once take turns.
up() {
    need_root
    need_engine_packages
    need_command cc gcc libc6-dev
    mkdir -p "$lab"
    : >>"$marker"
    (
        flock 8
        # Also when it fails, and though what it has started may have a copy of the descriptor.
        trap 'flock --unlock 8' EXIT
        up_now
    ) 8<"$marker"
    echo "$socket"
}

up_now() {
    local name
    is_keeper_alive || make_namespace
    answers || start_daemon
    load_images
    for name in "${names[@]}"; do wake "$name"; done
}

# is_keeper_alive: whether the process in the file is still the one that this lab has started.
is_keeper_alive() {
    local pid
    pid=$(cat "$keeper" 2>/dev/null) && grep -qsxzF "GATEWREN_KEEPER=$keeper" "/proc/$pid/environ"
}

make_namespace() {
    local folder
    for folder in "${own_folders[@]}"; do mkdir -p "/run/$folder"; done
    rm -f "$engines/made"
    # shellcheck disable=SC2016 # the inner shell expands
    GATEWREN_KEEPER=$keeper setsid unshare --mount --propagation private -- /bin/bash -ec '
        echo $$ >"$1"
        made=$2 enter=$3
        shift 3
        for folder; do mount -t tmpfs -o mode=755 tmpfs "/run/$folder"; done
        exec "$enter" /bin/sh -c ": >\"\$0\"; exec sleep infinity" "$made"
    ' keeper "$keeper" "$engines/made" "$root/tests/lab/with-cgroup2" "${own_folders[@]}" \
        >"$engines/namespace.log" 2>&1 </dev/null &
    wait_for "the namespace" "$engines/namespace.log" test -e "$engines/made"
}

# wait_for WHAT LOG CMD...: waits until CMD succeeds; after a minute prints the end of the log and fails.
wait_for() {
    for _ in {1..1200}; do
        ! "${@:3}" || return 0
        sleep .05
    done
    tail -n 5 "$2" >&2
    die "$1 is not ready after a minute; see $2"
}

# inside CMD...: CMD in the namespace, in this folder.
inside() {
    is_keeper_alive || die "the lab is not up; start it with $0 up"
    nsenter --mount --target "$(cat "$keeper")" --wd="$PWD" -- "$@"
}

answers() { curl -fs -m 5 --unix-socket "$socket" http://engine/_ping >/dev/null 2>&1; }

# Both labs use the same two archives.
load_images() {
    local made
    client image inspect "$image" "$bare_image" >/dev/null 2>&1 && return
    made=$(mktemp -d)
    mkdir -p "$made"/{lab/{bin,etc,tmp,root,home/app},bare/bin}
    cc -static -O1 -o "$made/bare/bin/processes" "$root/tests/lab/processes.c"
    cp "$made/bare/bin/processes" /bin/busybox "$made/lab/bin/"
    /bin/busybox --list | grep -vx busybox | xargs -I{} ln -s busybox "$made/lab/bin/{}"
    printf '%s\n' root:x:0:0:root:/root:/bin/sh app:x:1000:1000:app:/home/app:/bin/sh >"$made/lab/etc/passwd"
    printf '%s\n' root:x:0: app:x:1000: >"$made/lab/etc/group"
    chown 1000:1000 "$made/lab/home/app"
    chmod 1777 "$made/lab/tmp"
    tar -C "$made/lab" -cf "$made/lab.tar" .
    tar -C "$made/bare" -cf "$made/bare.tar" .
    load_image "$image" "$made/lab.tar"
    load_image "$bare_image" "$made/bare.tar"
    rm -rf "$made"
}

# wake NAME: whatever a test left it in, the container runs and answers afterwards.
wake() {
    case $(state "$1") in
    running) ;;
    paused) client unpause "$1" >/dev/null ;;
    '') run_container "$1" >/dev/null ;;
    *) client start "$1" >/dev/null ;;
    esac
    timeout 120 "$0" cli exec "$1" /bin/true </dev/null || die "$1 does not answer; see $lab/log"
}

state() { client inspect --type container --format '{{.State.Status}}' "$1" 2>/dev/null || true; }

# run_container NAME OPTION...: starts a container of the lab's image with more options of `docker run`.
run_container() {
    [ $# -gt 0 ] || die "run needs a name"
    client run --detach --name "$1" --network none "${@:2}" "$image" /bin/sh -c "$init"
}

status() {
    local name
    client ps --all
    for name in "${names[@]}"; do [ "$(state "$name")" = running ] || exit 1; done
}

restart() {
    case ${1-} in
    '') stop_daemon TERM ;;
    -k) stop_daemon KILL ;;
    *) die "restart takes -k and nothing else" ;;
    esac
    start_daemon
}

# stop_process SIGNAL FILE WORD: signals the process whose id is in the file, if WORD is one of its arguments, waits for
# its end, and removes the file: to a daemon that starts, a process that nobody has reaped yet would be a running one.
stop_process() {
    local pid
    pid=$(cat "$2" 2>/dev/null) && grep -qsxzF -- "$3" "/proc/$pid/cmdline" || return 0
    kill "-$1" "$pid" 2>/dev/null || return 0
    for _ in {1..1200}; do # a minute
        if ! [ -e "/proc/$pid" ] || grep -qs '^State:\sZ' "/proc/$pid/status"; then
            rm -f "$2"
            return
        fi
        sleep .05
    done
    die "process $pid does not end; see $lab/log"
}

down() {
    need_root
    [ -e "$marker" ] || return 0
    if is_keeper_alive; then
        if [ -d "$lab" ]; then
            answers && remove_containers
            stop_daemon TERM
            remove_leftovers
        fi
        unmount_below "$lab"
    fi
    rm -rf "${lab:?}"
    # The last of both labs ends the namespace.
    ! compgen -G "$engines/*/" >/dev/null || return 0
    end_namespace
    rm -rf "${engines:?}"
    rmdir "${engines%/engines}" 2>/dev/null || true
}

remove_containers() {
    local ids
    ids=$(client ps --all --quiet --no-trunc) || return 0
    # shellcheck disable=SC2086 # one word each
    [ -z "$ids" ] || client rm --force $ids >/dev/null 2>&1 || true
}

# delete_all RUNTIME STATE: kills and removes the containers that an OCI runtime still knows there.
delete_all() {
    local folder
    for folder in $(inside find "$2" -mindepth 1 -maxdepth 1 -type d 2>/dev/null); do
        inside "$1" --root "$2" delete --force "${folder##*/}" >/dev/null 2>&1 || true
    done
}

unmount_below() {
    local mounts
    # shellcheck disable=SC2016 # awk's own
    mounts=$(inside awk -v below="$1/" 'index($2, below) == 1 {print $2}' /proc/mounts | sort -r)
    # shellcheck disable=SC2086 # one word each
    [ -z "$mounts" ] || inside umount --lazy $mounts || true
}

# Everything in the namespace ends with it: daemons that were killed leave shims and monitors.
end_namespace() {
    local space left held
    is_keeper_alive || return 0
    # Held open, since the kernel gives the number of a namespace that has gone to the next one: a container that another
    # lab starts just then.
    exec {held}<"/proc/$(cat "$keeper")/ns/mnt"
    space=$(readlink "/proc/self/fd/$held")
    for _ in {1..600}; do # half a minute
        left=$(processes_in "$space")
        [ -n "$left" ] || break
        # shellcheck disable=SC2086 # one word each
        kill -KILL $left 2>/dev/null || true
        sleep .05
    done
    exec {held}<&-
    [ -z "$left" ] || die "processes of the lab do not end: $left"
    rmdir /sys/fs/cgroup/{,unified/}{docker,libpod_parent/conmon,libpod_parent} 2>/dev/null || true
}

# processes_in NAMESPACE: the ids of the processes in a mount namespace. Some end while they are listed.
processes_in() {
    local pattern=${1//[/\\[}
    { find /proc/[0-9]*/ns/mnt -maxdepth 0 -lname "$pattern" 2>/dev/null || true; } | tr '/' ' ' | awk '{print $2}'
}
