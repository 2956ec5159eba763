"""Fetches a small file that the user names by a URL, with limits of size and time."""

import re
import time

from ouzel.errors import ModelLoadError

TIMEOUT_S = 30.0  # longest time of the whole download
_CREDENTIALS = re.compile(r"//[^/?#]*@")


def hide_credentials(url: str) -> str:
    """Returns the URL with "…" in place of the user name and password."""
    return _CREDENTIALS.sub("//…@", url)


def fetch_file(url: str, max_bytes: int, *, timeout_s: float = TIMEOUT_S) -> bytes:
    """Returns the content of the file. Raises ModelLoadError."""
    import httpx2  # noqa: PLC0415  slow, and needed for a URL only

    end = time.monotonic() + timeout_s
    content = bytearray()
    headers = {"accept-encoding": "identity"}  # a few compressed bytes can expand without limit
    try:
        with httpx2.stream(
            "GET", url, headers=headers, follow_redirects=True, timeout=timeout_s
        ) as answer:
            answer.raise_for_status()
            for piece in answer.iter_raw():
                content += piece
                if len(content) > max_bytes:
                    raise _refuse(url, f"must be at most {max_bytes // 2**20} MiB")
                if time.monotonic() > end:
                    raise _refuse(url, f"did not arrive within {timeout_s:g} s")
    except httpx2.HTTPStatusError as error:
        raise _refuse(url, f"answered with status {error.response.status_code}") from error
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, ImportError, OSError) as error:
        raise _refuse(url, f"cannot be fetched: {str(error) or type(error).__name__}") from error
    return bytes(content)


def _refuse(url: str, complaint: str) -> ModelLoadError:
    return ModelLoadError(f"--catalogue {hide_credentials(url)}: {complaint}")
