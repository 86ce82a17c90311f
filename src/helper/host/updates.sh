#!/bin/sh
# What the helper has apt do, on the host and in containers, a step at a time. It runs `check` and `history` of a
# container on the host, over the container's files:
#
#   refresh                                        fetches the lists of packages
#   mend                                           finishes what was broken off, without which apt fetches nothing
#   download SCOPE REMOVALS AGENT [PACKAGE...]     fetches what the next step installs
#   install  SCOPE REMOVALS AGENT [PACKAGE...]     installs it, and says what is different then
#   purge AGENT PACKAGE...                         removes these packages, if no other one goes with them
#   check                                          prints what an upgrade would do; it locks nothing
#   history  N                                     prints apt's record, the Nth before the current one
#   health                                         prints failed units, open ports and half-installed packages
#
# SCOPE is all, security, named, or exact, whose packages are NAME=VERSION; REMOVALS is keep or allow. What is for
# gatewren begins with "gatewren: ".
# Whoever runs this passes its text as $0. It is broken off safely at each step but `mend` and `install`.
step=$1
export DEBIAN_FRONTEND=noninteractive APT_LISTCHANGES_FRONTEND=none LC_ALL=C.UTF-8

if ! command -v apt-get >/dev/null; then
    echo "apt is not installed here: another program manages the packages" >&2
    exit 127
fi

# No question is asked; changed configuration files stay as they are; nothing that is held or essential is touched, and
# nothing goes back to an older version, whatever apt is set to. Another apt, such as unattended-upgrades, is waited for
# for five minutes: a call becomes a job after 45 seconds, and only then can its caller read what it waits for.
apt() {
    apt-get --quiet=1 --assume-yes \
        --option=Dpkg::Use-Pty=0 \
        --option=Dpkg::Options::=--force-confdef \
        --option=Dpkg::Options::=--force-confold \
        --option=DPkg::Lock::Timeout=300 \
        --option=APT::Get::force-yes=false \
        --option=APT::Get::allow-downgrades=false \
        --option=APT::Get::allow-remove-essential=false \
        --option=APT::Get::allow-change-held-packages=false \
        --option=APT::Get::AllowUnauthenticated=false \
        --option=APT::Get::Show-User-Simulation-Note=false \
        "$@"
}

simulate() {
    apt --simulate --option=Debug::NoLocking=true "$@" dist-upgrade
}

# The installed packages for which a repository of security updates has a newer version: by its label on Debian, by its
# suite on Ubuntu.
security() {
    simulate | sed -n 's/^Inst \([^ ]*\) \[[^(]*([^ ]* [^)]*-[Ss]ecurity\(:\|,\| \[\)[^)]*).*/\1/p'
}

# upgrade OPTION SCOPE REMOVALS AGENT [PACKAGE...]
upgrade() {
    option=$1 scope=$2 removals=$3 agent=$4
    shift 4
    if [ "$scope" = security ]; then
        # shellcheck disable=SC2046 # a word each
        set -- $(security)
    fi
    if [ "$scope" != all ] && [ $# = 0 ]; then
        echo "There is nothing to upgrade."
        return 0
    fi
    [ "$removals" = allow ] || option="$option --no-remove"
    case $scope-$removals in
    all-allow) set -- dist-upgrade ;;
    all-*) set -- --with-new-pkgs upgrade ;;
    exact-*) set -- install -- "$@" ;;
    *) set -- --only-upgrade install -- "$@" ;;
    esac
    # shellcheck disable=SC2086 # none, one or two
    apt $option --option=Gatewren::Agent="$agent" "$@"
}

configure() {
    dpkg --force-confdef --force-confold --configure --pending
}

packages() {
    dpkg-query --show --showformat='${db:Status-Abbrev} ${Package} ${Architecture} ${Version}\n' |
        grep '^.[^nc]'
}

# What is different between two lists with an empty line between them.
differences() {
    awk '
        NF == 0 { after = 1; next }
        { key = $2 " " $3 }
        !after { old[key] = $4; next }
        { new[key] = 1 }
        !(key in old) { print "gatewren: installed", key, $4 }
        key in old && old[key] != $4 { print "gatewren: upgraded", key, old[key], $4 }
        $1 ~ /^.[HUF]/ { print "gatewren: unfinished", key }
        END { for (key in old) if (!(key in new)) print "gatewren: removed", key, old[key] }
    ' | LC_ALL=C sort
}

# apt takes what is named for what somebody wanted: packages that were not wanted before stay automatically installed.
install() {
    before=$(packages)
    manual=$(apt-mark showmanual)
    # What an earlier end of the power left half done.
    configure
    upgrade "" "$@"
    status=$?
    if [ "$1" != all ]; then
        new=$(apt-mark showmanual | grep -vxF -e "$manual")
        # shellcheck disable=SC2086 # a word each
        [ -z "$new" ] || apt-mark auto $new >/dev/null
    fi
    echo "gatewren: done $status"
    { printf '%s\n\n' "$before"; packages; } | differences
    reboot
    return $status
}

# A list that cannot be fetched is an error, though apt goes on with an old one; older versions of apt only warn.
refresh() {
    { errors=$(apt --option=APT::Update::Error-Mode=any update 2>&1 >&3); } 3>&1
    status=$?
    [ -z "$errors" ] || printf '%s\n' "$errors" >&2
    case $errors in *"Failed to fetch"* | *"failed to download"*) [ "$status" != 0 ] || status=100 ;; esac
    return $status
}

# TCP ports are hexadecimal, as the kernel prints them.
health() {
    if [ -d /run/systemd/system ]; then
        systemctl list-units --state=failed --plain --no-legend --no-pager --full |
            awk '{ print "gatewren: failed", $1 }'
    fi
    cat /proc/net/tcp /proc/net/tcp6 2>/dev/null |
        awk '$4 == "0A" { sub(/.*:/, "", $2); print "gatewren: port", $2 }' | sort -u
    dpkg --audit | awk '/^ / { print "gatewren: unfinished", $1 }'
}

reboot() {
    [ -e /run/reboot-required ] || return 0
    echo "gatewren: reboot"
    [ ! -e /run/reboot-required.pkgs ] || sed 's/^/gatewren: reboot /' /run/reboot-required.pkgs
}

# The same as a unit of systemd's: it goes on when whoever waits for it is ended, as when gatewren itself is upgraded.
install_apart() {
    place=$(mktemp -d /run/gatewren-update.XXXXXX) || exit 1
    printf '%s\n' "$script" >"$place/updates"
    : >"$place/log"
    systemd-run --quiet --collect --wait --description="Updates for gatewren" \
        --property=StandardOutput="append:$place/log" --property=StandardError="append:$place/log" \
        /bin/sh "$place/updates" install-here "$@" &
    unit=$!
    tail --lines=+1 --follow --sleep-interval=0.2 --pid=$unit "$place/log"
    wait $unit
    status=$?
    rm -rf "$place"
    return $status
}

script=$0
newline='
'
shift
case $step in
refresh) refresh ;;
health) health ;;
mend)
    # Numbered files are what dpkg had not put into its database yet.
    for part in /var/lib/dpkg/updates/[0-9]*; do
        [ ! -e "$part" ] || { configure; break; }
    done
    ;;
download) upgrade --download-only "$@" ;;
install-here) install "$@" ;;
install)
    if [ -d /run/systemd/system ] && command -v systemd-run >/dev/null; then
        install_apart "$@"
    else
        install "$@"
    fi
    ;;
purge)
    agent=$1
    shift
    plan=$(apt --simulate --option=Debug::NoLocking=true purge -- "$@") || exit
    for gone in $(printf '%s\n' "$plan" | sed -n 's/^\(Purg\|Remv\) \([^ ]*\) .*/\2/p'); do
        case " $* " in
        *" $gone "*) ;;
        *)
            echo "apt would also remove $gone, so nothing was removed" >&2
            exit 100
            ;;
        esac
    done
    apt --option=Gatewren::Agent="$agent" purge -- "$@"
    ;;
check)
    # These packages may be a container's, whose architecture need not be that of the apt that looks at them.
    native=$(dpkg-query --show --showformat='${Architecture}' dpkg) || exit
    plan=$(simulate --option=APT::Architecture="$native")
    status=$?
    printf '%s\n' "$plan"
    [ "$status" = 0 ] || exit "$status"
    # "Need to get 12.3 MB of archives." and "After this operation, 1,234 kB of additional disk space will be used." apt
    # prints neither when there is nothing to do.
    case $newline$plan in
    *"${newline}Inst "* | *"${newline}Remv "* | *"${newline}Purg "*)
        apt --option=Debug::NoLocking=true --option=APT::Architecture="$native" --print-uris dist-upgrade 2>/dev/null |
            sed -n 's/^\(Need to get\|After this operation\)/gatewren: space &/p'
        ;;
    esac
    stat --file-system --format='gatewren: free %a %S' /var/lib/dpkg
    reboot
    for list in /var/lib/apt/lists/*Release; do
        [ -e "$list" ] || continue
        stat --format='gatewren: lists %Y' "$list"
        # apt touches it at each update, but lists may have been put there without it.
        [ ! -e /var/lib/apt/lists/partial ] || stat --format='gatewren: lists %Y' /var/lib/apt/lists/partial
    done
    ;;
history)
    for file in "/var/log/apt/history.log${1:+.$1}" "/var/log/apt/history.log.$1.gz"; do
        [ ! -f "$file" ] || exec zcat --force -- "$file"
    done
    exit 3
    ;;
esac
