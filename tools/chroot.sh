# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Shell functions that run commands in copies of a bare Debian. To be sourced, with the folder of the
# bases and of the copies as $1 or without arguments, and the name of the suite in $suite (default
# bookworm, which is Debian 12).

# shellcheck source=tools/setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
[ "$(id -u)" -eq 0 ] || die "debootstrap and chroot need root"
need_packages debootstrap

folder=${1-} # kept; otherwise a temporary one
if [ -z "$folder" ]; then
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
fi
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
log=$folder/log${suite:+-$suite}
: >"$log"

# step TEXT COMMAND...: runs the command; ends the script if it fails.
step() {
    local text=$1 begun=$SECONDS
    shift
    if ! { echo "== $text" && "$@"; } >>"$log" 2>&1 </dev/null; then
        tail -n 30 "$log" >&2
        say "FAILED: $text"
        exit 1
    fi
    printf '%4d s  %s\n' $((SECONDS - begun)) "$text"
}

# inside ROOT SCRIPT: runs the script by a shell in the chroot, in the copy of this tree, and with
# nothing of this machine's environment. /proc and the terminals are mounted for this shell only, in a
# mount namespace of its own, so no mount is left when it ends. Python's pip trusts the certificates that
# this machine trusts.
inside() {
    # shellcheck disable=SC2016 # expanded by that shell
    unshare --mount --propagation private /bin/sh -ec '
        mount -t proc proc "$0/proc"
        mount -t tmpfs tmpfs "$0/dev/shm"
        mount -t devpts -o newinstance,ptmxmode=0666 devpts "$0/dev/pts"
        exec chroot "$0" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
            HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive PIP_CERT=/etc/machine.crt \
            /bin/sh -ec "cd /shardload && $1"' "$1" "$2"
}

# fresh ROOT: a copy of the suite's base with a copy of the tree, and the packages downloaded earlier.
fresh() {
    rm -rf --one-file-system "$1"
    cp -a "$base" "$1"
    mkdir -p "$1/shardload" "$folder/packages"
    (cd "$top" && git ls-files -z --cached --others --exclude-standard | tar --null -T - -cf -) |
        tar -C "$1/shardload" --no-same-owner -xf -
    cp /etc/resolv.conf "$1/etc/resolv.conf"
    if [ -e /etc/ssl/certs/ca-certificates.crt ]; then
        cp /etc/ssl/certs/ca-certificates.crt "$1/etc/machine.crt"
    fi
    # The suites that change daily have releases that expire, which a mirror with an older state keeps.
    printf 'APT::Get::Assume-Yes "true";\nAcquire::Check-Valid-Until "false";\n' >"$1/etc/apt/apt.conf.d/99assume-yes"
    cp -al "$folder/packages/." "$1/var/cache/apt/archives/"
}

# keep_packages ROOT: keeps the packages that were downloaded there, for further copies.
keep_packages() {
    find "$1/var/cache/apt/archives" -maxdepth 1 -name '*.deb' -links 1 -exec mv -t "$folder/packages" {} +
}

# A minimal Debian of the suite, which the copies are made from. A suite that this debootstrap does not
# know yet is installed like sid.
: "${suite:=bookworm}"
base=$folder/base-$suite
if [ ! -e "$base/complete" ]; then
    script=
    [ -e "/usr/share/debootstrap/scripts/$suite" ] || script=/usr/share/debootstrap/scripts/sid
    rm -rf --one-file-system "$base"
    mkdir -p "$folder/packages"
    step "debootstrap $suite" debootstrap --variant=minbase --cache-dir="$folder/packages" \
        "$suite" "$base" '' ${script:+"$script"}
    rm -f "$base"/var/cache/apt/archives/*.deb # they are in packages
    touch "$base/complete"
fi
