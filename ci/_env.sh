# Sourced by the other scripts. Changes to the top of the checkout and defines:
#   say, step          announce a step; announce, run and time it
#   make_environment   create .venv with all build and test dependencies; again when the list of these changes
#   build_wheel DIR [SETTING...]   build the wheel in build/DIR/wheel, with optional meson settings
#   install_wheel      build it and install it in .venv
#   in_asv_bench       run a command in asv_bench/
#   run_asv [...]      check the asv suite and run each benchmark once on the installed package; arguments go to asv
#
# PYTHON names the interpreter for .venv. The default is the first suitable one on PATH.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec </dev/null
unset PYTHONPATH PYTHONHOME
export PYTHONNOUSERSITE=1 PIP_DISABLE_PIP_VERSION_CHECK=1 OPENBLAS_NUM_THREADS=1
[ -t 1 ] || export NO_COLOR=1

venv=$PWD/.venv
workers=(--numprocesses=auto --maxprocesses=4)  # of pytest

say() { printf '\n== %s\n' "$*"; }

fail() {
    printf '\nerror: %s\n' "$*" >&2
    exit 1
}

trap 'printf "\nfailed: %s, line %s: %s\n" "${BASH_SOURCE[0]}" "$LINENO" "$BASH_COMMAND" >&2' ERR
set -o errtrace

step() {
    local start=$SECONDS
    say "$1"
    "${@:2}"
    echo "-- $1: $((SECONDS - start)) s"
}

usable='import os, sys, sysconfig, venv, ensurepip
assert sys.version_info >= (3, 11)
assert os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))'

find_python() {
    local candidate
    for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11 python3.14}; do
        if "$candidate" -c "$usable" 2>/dev/null; then
            "$candidate" -c 'import os, sys; print(os.path.realpath(sys.executable))'
            return
        fi
    done
    fail "needs Python 3.11 or later with its venv module and C headers (Debian, Ubuntu: apt install python3-venv python3-dev); not suitable: ${PYTHON:-all on PATH}"
}

# Print the dependencies in pyproject.toml: build, run time, and the extras for tests.
requirements='import tomllib
with open("pyproject.toml", "rb") as file:
    settings = tomllib.load(file)
project = settings["project"]
extras = project["optional-dependencies"]
wanted = settings["build-system"]["requires"] + project["dependencies"] + extras["test"] + extras["dev"]
print("\n".join(sorted(set(wanted))))'

make_environment() {
    local python wanted
    command -v "${CC:-cc}" >/dev/null || command -v gcc >/dev/null || command -v clang >/dev/null ||
        fail "needs a C compiler (Debian, Ubuntu: apt install gcc)"
    python=$(find_python)
    wanted=$("$python" -c "$requirements")
    if ! "$venv/bin/python" -c '' 2>/dev/null || [ "$(cat "$venv/installed.txt" 2>/dev/null)" != "$wanted" ]; then
        echo "making .venv with $("$python" --version)"
        "$python" -m venv --clear "$venv"
        "$venv/bin/python" -m pip install --quiet --requirement <(echo "$wanted")
        echo "$wanted" >"$venv/installed.txt"
    fi
    PATH=$venv/bin:$PATH
    echo "$(python --version), $(${CC:-cc} --version | head -n 1)"
}

build_wheel() {
    local dir=build/$1 setting settings=()
    for setting in "${@:2}"; do settings+=("--config-settings=setup-args=$setting"); done
    rm -rf "$dir/wheel"
    python -m pip wheel --quiet --no-build-isolation --no-deps --wheel-dir "$dir/wheel" \
        --config-settings=build-dir="$dir/meson" "${settings[@]}" .
    echo "$dir/wheel/"*.whl
}

install_wheel() {
    build_wheel release
    python -m pip install --quiet --no-deps --force-reinstall build/release/wheel/*.whl
}

in_asv_bench() { (cd asv_bench && "$@"); }

run_asv() {
    local here
    here=existing:$(command -v python)
    in_asv_bench asv machine --yes >/dev/null
    in_asv_bench asv check --environment "$here"
    in_asv_bench asv run --quick --dry-run --show-stderr --environment "$here" "$@"
}
