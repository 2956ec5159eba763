#!/bin/sh
# Builds check.cpp with sanitizers, and runs it with one, four and two threads; where Valgrind is installed, it also runs a
# few products of a build without sanitizers. `just kernels-check` calls this with an interpreter that has openvino and tbb-devel.
set -eu
cd "$(dirname "$0")/../.."

build() {  # folder, options
    folder=.cache/kernels-check/$1
    shift
    cmake -S kernels -B "$folder" -G Ninja -DPython_EXECUTABLE="$(command -v python)" -DOUZEL_KERNELS_CHECK=ON --log-level=WARNING "$@"
    cmake --build "$folder"
}

build sanitized -DOUZEL_KERNELS_SANITIZE=ON
for options in "--threads 1 --small" "--threads 4 --small" "--threads 2"; do  # on two cores some of four threads come late
    echo "sanitizers, $options"
    .cache/kernels-check/sanitized/check $options
done
if command -v valgrind >/dev/null; then
    build plain -DOUZEL_KERNELS_SANITIZE=OFF
    echo "Valgrind, 1 thread"
    valgrind --quiet --error-exitcode=1 .cache/kernels-check/plain/check --level avx2 --small
fi
