# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Shell functions that the scripts of tools/ share: packages, build, folders.
# To be sourced.

export HOME=${HOME:-~} # a service may be started without HOME
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

# run_logged LOG COMMAND...: appends the output to LOG, and prints its last line every ten seconds.
run_logged() {
    local log=$1 line part='' last='' status printed=$SECONDS
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
        if [ $((SECONDS - printed)) -ge 10 ] && [ -n "$last" ]; then
            printf '   ... %.100s\n' "${last##*$'\r'}" >&2
            printed=$SECONDS
        fi
    done >>"$log"
}

# need_packages PACKAGE...: installs missing Debian packages as root or by sudo; otherwise exits and
# prints the command that installs them.
need_packages() {
    local missing=() package
    command -v dpkg-query >/dev/null || return 0 # not Debian: CMake reports missing libraries
    for package in "$@"; do # from Debian 13 on, some names of libraries end in t64
        { dpkg-query -W -f '${db:Status-Status}\n' "$package" "${package}t64" 2>/dev/null || true; } |
            grep -qx installed || missing+=("$package")
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
    # apt-get update fails if one of several sources is unreachable; the packages may still install.
    run_logged "$log" "${as[@]}" apt-get update -qq || tail -n 5 "$log" >&2
    if ! run_logged "$log" "${as[@]}" env DEBIAN_FRONTEND=noninteractive "${install[@]}"; then
        tail -n 20 "$log" >&2
        rm -f "$log"
        die "installing packages failed; $ask"
    fi
    rm -f "$log"
}

# Packages that the build needs; packages that the mongod of tools/localcluster (from pip) needs.
# shellcheck disable=SC2034 # used by the scripts that source this file
mapfile -t build_packages < <(grep -oE '\b(lib[a-z0-9-]+|zlib1g)-dev\b' "$top/cmake/Dependencies.cmake" |
    grep -vx libcmocka-dev | sort -u)
build_packages+=(gcc libc6-dev make cmake pkg-config)
server_packages=(libcurl4 libssl3)
if ! python3 -m pip --version >/dev/null 2>&1 || ! python3 -c 'import ensurepip' 2>/dev/null; then
    server_packages+=(python3 python3-pip python3-venv)
fi

# Names for tools/test. offline_tests: the unit tests and the tests of the command line, without
# test_fuzz, which makes a build of its own. sanitized_tests: those that continuous integration also runs
# with sanitizers; without unit tests that need servers, and tests that run neither program, or (test_memory)
# replace the allocator.
# shellcheck disable=SC2034 # used by the scripts that source this file
offline_tests=(tests/unit/) sanitized_tests=()
for file in "$top"/tests/unit/test_*.c "$top"/tests/cli/test_*.py; do
    name=$(basename "${file%.*}")
    case $file:$name in
    *.c:test_cluster*) ;;
    *.c:*) sanitized_tests+=("tests/unit/$name.c") ;;
    *:test_fuzz) ;;
    *:test_bench | *:test_contributing | *:test_datagen* | *:test_house | *:test_memory | *:test_mutants | *:test_packages)
        offline_tests+=("tests/cli/$name.py")
        ;;
    *)
        offline_tests+=("tests/cli/$name.py")
        sanitized_tests+=("tests/cli/$name.py")
        ;;
    esac
done
unset file name

# Prints the path of a clang that has libFuzzer and the sanitizers; nothing if there is none.
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

# build_tree FOLDER TARGET [CMAKE OPTION...]: configures the tree and builds the target (all: everything);
# prints the errors of a failure.
build_tree() {
    local folder=$1 target=$2 log=$1/build.log
    shift 2
    if ! { mkdir -p "$folder" && : >"$log"; }; then
        die "cannot write to $folder; set SHARDLOAD_BUILD to another build folder"
    fi
    say "building in $folder"
    if ! { run_logged "$log" cmake -S "$top" -B "$folder" "$@" &&
        run_logged "$log" cmake --build "$folder" -j "$(nproc)" --target "$target"; }; then
        grep -nE 'error|Error|Missing|apt-get' "$log" | head -n 20 >&2 || true
        die "the build failed; its complete output is in $log"
    fi
}

# build_sanitized TARGET: builds with sanitizers for addresses and undefined behaviour. tools/fuzz and
# `tools/test --sanitize address` share this build, so its libraries are compiled once. It includes the
# fuzzers if there is a clang. Sets SHARDLOAD_BUILD to the build folder.
build_sanitized() {
    local clang options=(-DCMAKE_BUILD_TYPE=RelWithDebInfo
        '-DSHARDLOAD_SANITIZE=address;undefined' -DSHARDLOAD_TESTS=ON -DSHARDLOAD_TOOLS=ON)
    clang=$(clang_of)
    if [ -n "$clang" ]; then # warnings are those of gcc: clang's are others
        options+=("-DCMAKE_C_COMPILER=$clang" -DSHARDLOAD_FUZZ=ON -DSHARDLOAD_WERROR=OFF)
    fi
    SHARDLOAD_BUILD=${SHARDLOAD_BUILD%-address}-address # test_fuzz may run with sanitizers itself
    build_tree "$SHARDLOAD_BUILD" "$1" "${options[@]}"
    export LSAN_OPTIONS="suppressions='$top/tests/sanitizers/leak.supp':print_suppressions=0"
}

# Prints the path of a Python that has the MongoDB driver, the tests' independent client. Creates
# that Python environment below $SHARDLOAD_CACHE if needed.
python_with_driver() {
    local home=$SHARDLOAD_CACHE/python pinned=$top/tools/python-driver.txt versions
    mapfile -t versions < <(sed -nE 's/^pymongo==([0-9.]+).*/\1/p' "$pinned") # by version of Python
    local install=("$home/bin/python" -m pip install -q --disable-pip-version-check
        --only-binary :all: --require-hashes --requirement "$pinned")
    if ! "$home/bin/python" -c 'import pymongo, sys; sys.exit(pymongo.version not in sys.argv)' \
        "${versions[@]}" 2>/dev/null; then
        say "fetching the Python driver (pymongo)"
        mkdir -p "$SHARDLOAD_CACHE"
        rm -rf "$home"
        if ! { python3 -m venv "$home" && "${install[@]}"; } >&2; then
            die "cannot install the Python driver, or its SHA-256 is not one of those in" \
                "tools/python-driver.txt; this command failed:" "${install[*]}"
        fi
    fi
    echo "$home/bin/python"
}

# Prints the folder with the programs of tools/checks/python-packages.txt. Installs them into the
# Python environment of python_with_driver if needed.
python_checks() {
    local pinned=$top/tools/checks/python-packages.txt python installed
    python=$(python_with_driver) || return
    installed=${python%/bin/python}/checks-$(sha256sum "$pinned" | cut -c 1-16)
    local install=("$python" -m pip install -q --disable-pip-version-check --only-binary :all:
        --require-hashes --requirement "$pinned")
    if [ ! -e "$installed" ]; then
        "${install[@]}" >&2 || die "this command failed: ${install[*]}"
        touch "$installed"
    fi
    dirname "$python"
}
