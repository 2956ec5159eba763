#!/bin/sh
# Builds check.cpp and runs it: `just kernels-check`, which gives it an interpreter with openvino and tbb-devel.
set -eu
cd "$(dirname "$0")/../.."
build=.cache/kernels-check
cmake -S kernels -B "$build" -G Ninja -DOUZEL_KERNELS_CHECK=ON -DPython_EXECUTABLE="$(command -v python)" --log-level=WARNING
cmake --build "$build"
"$build/check"
