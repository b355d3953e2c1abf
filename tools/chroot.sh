# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Shell functions that run commands in copies of a bare Debian 12. To be sourced, with the folder of the
# base and of the copies as $1 or without arguments.

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
log=$folder/log
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
# nothing of this machine's environment.
inside() {
    chroot "$1" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive /bin/sh -ec "cd /shardload && $2"
}

# fresh ROOT: a copy of the base with a copy of the tree.
fresh() {
    rm -rf --one-file-system "$1"
    cp -a "$folder/base" "$1"
    mkdir "$1/shardload"
    (cd "$top" && git ls-files -z --cached --others --exclude-standard | tar --null -T - -cf -) |
        tar -C "$1/shardload" --no-same-owner -xf -
    cp /etc/resolv.conf "$1/etc/resolv.conf"
    printf 'APT::Get::Assume-Yes "true";\n' >"$1/etc/apt/apt.conf.d/99assume-yes"
}

# A minimal Debian 12, which the copies are made from.
if [ ! -e "$folder/base/complete" ]; then
    rm -rf --one-file-system "$folder/base"
    step 'debootstrap' debootstrap --variant=minbase bookworm "$folder/base"
    touch "$folder/base/complete"
fi
