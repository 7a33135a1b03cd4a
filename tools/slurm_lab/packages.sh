#!/bin/sh
# Installs what the lab needs from Debian or Ubuntu, and starts none of it: no service of the packages, no database of theirs.
set -eu
packages="slurmctld slurmd slurm-client slurmrestd munge slurmdbd slurm-wlm-mysql-plugin mariadb-server-core mariadb-client-core"

PATH="$PATH:/usr/sbin:/sbin"
is_missing() {
    for program in slurmctld slurmd scontrol slurmrestd munged slurmdbd mariadbd mariadb-install-db mariadb; do
        command -v "$program" >/dev/null 2>&1 || return 0
    done
    return 1
}
is_missing || exit 0
if ! command -v apt-get >/dev/null 2>&1; then
    echo "slurm packages: there is no apt-get here; install by your own means: $packages" >&2
    exit 1
fi
if [ "$(id -u)" != 0 ]; then
    echo "slurm packages: installing needs root; run as root: apt-get install --no-install-recommends $packages" >&2
    exit 1
fi

# What dpkg asks before it starts a service: no, for as long as this takes.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    trap 'exit 130' INT TERM
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
for words in "update" "install -y --no-install-recommends $packages"; do
    # shellcheck disable=SC2086 # words are words
    if ! apt-get -q -o DPkg::Lock::Timeout=120 $words >"$log" 2>&1 </dev/null; then
        tail -n 20 "$log" >&2
        rm -f "$log"
        echo "slurm packages: apt-get ${words%% *} failed" >&2
        exit 1
    fi
done
rm -f "$log"
if is_missing; then
    echo "slurm packages: installed, and a program is still missing" >&2
    exit 1
fi
