#!/bin/sh
# Installs Ouzel into a directory, exactly as the lock file says: build.sh DIRECTORY
#
# The Containerfile's build stage runs this, and so does `python -m tools.deploy.image`, which starts what it made where
# there is no container tool. Extras are named in EXTRAS, as in EXTRAS="postgres otel".
set -eu
directory=$1
cd "$(dirname "$0")/../.."

# The interpreter is that of the image, and what is installed neither points to this clone nor is compiled later: where
# it runs it cannot be written to.
export UV_PROJECT_ENVIRONMENT="$directory" UV_PYTHON_DOWNLOADS=never UV_LINK_MODE=copy UV_COMPILE_BYTECODE=1
set -- --locked --no-dev --no-editable --quiet
for extra in ${EXTRAS-}; do
    set -- "$@" --extra "$extra"
done
uv sync --python "${PYTHON-python3}" "$@"

# The kernels are for this processor only; without a compiler their package has no library.
[ "$(uname -m)" != x86_64 ] || "$directory/bin/python" -c 'import ouzel_kernels as kernels; assert kernels.LIBRARY, kernels.REASON'

# Stubs and C headers are read by nobody here.
find "$directory" -name '*.pyi' -delete
find "$directory" -type d -path '*/site-packages/*/include' -prune -exec rm -rf {} +
"$directory/bin/ouzel" --version
