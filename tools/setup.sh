# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What tools/demo and tools/test both need first: packages, a build, folders. Meant to be sourced.

export HOME=${HOME:-~} # not set where services start things
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

# patiently LOG COMMAND...: adds its output to LOG, and tells the last line of it every ten seconds.
patiently() {
    local log=$1 line part='' last='' status told=$SECONDS
    shift
    "$@" 2>&1 </dev/null | while :; do
        status=0
        IFS= read -r -t 1 line || status=$?
        part+=$line
        if [ $status -eq 0 ] || { [ $status -le 128 ] && [ -n "$part" ]; }; then
            printf '%s\n' "$part"
            last=$part part=''
        fi
        if [ $status -ne 0 ] && [ $status -le 128 ]; then
            break
        fi
        if [ $((SECONDS - told)) -ge 10 ] && [ -n "$last" ]; then
            printf '   ... %.100s\n' "${last##*$'\r'}" >&2
            told=$SECONDS
        fi
    done >>"$log"
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
    local as=() ask="please run as root: apt-get update && ${install[*]}"
    if [ "$(id -u)" -ne 0 ]; then
        if command -v sudo >/dev/null; then
            ask="please run: sudo apt-get update && sudo ${install[*]}"
            as=(sudo -n)
        fi
        if [ ${#as[@]} -eq 0 ] || ! sudo -n true 2>/dev/null; then
            die "these packages are missing; $ask"
        fi
    fi
    say "installing packages: ${missing[*]}"
    local log
    log=$(mktemp)
    # An update that fails, because one of several sources is away, need not stop the rest.
    patiently "$log" "${as[@]}" apt-get update -qq || tail -n 5 "$log" >&2
    if ! patiently "$log" "${as[@]}" env DEBIAN_FRONTEND=noninteractive "${install[@]}"; then
        tail -n 20 "$log" >&2
        rm -f "$log"
        die "installing packages failed; $ask"
    fi
    rm -f "$log"
}

# What a build needs, and what the packaged mongod is linked with and fetched by.
# shellcheck disable=SC2034 # for those who source this
build_packages=(gcc libc6-dev make cmake pkg-config libmongoc-dev libbson-dev libyaml-dev
    libssl-dev zlib1g-dev libarchive-dev liblzma-dev libzstd-dev liblz4-dev libbz2-dev libisal-dev)
server_packages=(libcurl4 libssl3)
if ! python3 -m pip --version >/dev/null 2>&1 || ! python3 -c 'import ensurepip' 2>/dev/null; then
    server_packages+=(python3 python3-pip python3-venv)
fi

# A clang that has libFuzzer and the sanitizers with it, or nothing.
clang_of() {
    local name
    for name in clang clang-14; do
        if echo 'int LLVMFuzzerTestOneInput(void); int LLVMFuzzerTestOneInput(void) { return 0; }' |
            "$name" -fsanitize=fuzzer,address,undefined -x c -o /dev/null - 2>/dev/null; then
            command -v "$name"
            return
        fi
    done
}

# build_tree FOLDER [CMAKE OPTION...]
build_tree() {
    local folder=$1 log=$1/build.log
    shift
    if ! { mkdir -p "$folder" && : >"$log"; }; then
        die "nothing can be written there; SHARDLOAD_BUILD names another build folder"
    fi
    say "building in $folder"
    if ! { patiently "$log" cmake -S "$top" -B "$folder" "$@" &&
        patiently "$log" cmake --build "$folder" -j "$(nproc)"; }; then
        grep -nE 'error|Error|Missing|apt-get' "$log" | head -n 20 >&2 || true
        die "the build failed; all of it is in $log"
    fi
}

# The independent client of the tests, in a Python environment of its own, outside the tree.
python_with_driver() {
    local home=$SHARDLOAD_CACHE/python pinned=$top/tools/python-driver.txt
    local install=("$home/bin/python" -m pip install -q --disable-pip-version-check
        --only-binary :all: --require-hashes --requirement "$pinned")
    if ! "$home/bin/python" -c 'import pymongo, sys; sys.exit(pymongo.version != "4.10.1")' \
        2>/dev/null; then
        say "fetching the Python driver (pymongo 4.10.1)"
        mkdir -p "$SHARDLOAD_CACHE"
        rm -rf "$home"
        if ! { python3 -m venv "$home" && "${install[@]}"; } >&2; then
            die "the Python driver cannot be fetched, or is not the one that" \
                "tools/python-driver.txt names by its SHA-256; this must work first:" "${install[*]}"
        fi
    fi
    echo "$home/bin/python"
}
