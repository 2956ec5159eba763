"""Names the build of the playground: two servers with the same files have the same build."""

import hashlib
from functools import cache

from ouzel import __version__
from ouzel.playground import DIRECTORY, file_names


@cache
def name_build() -> str:
    """Returns a digest of this version and all files of the playground."""
    digest = hashlib.blake2b(__version__.encode(), digest_size=12)
    for name in file_names():
        content = (DIRECTORY / name).read_bytes()
        digest.update(f"\n{name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()
