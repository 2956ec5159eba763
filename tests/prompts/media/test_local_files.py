"""Requests may name files of one directory, and no other file is read."""

import os
import re
import threading
from pathlib import Path

import pytest

from ouzel.errors import InvalidRequest
from ouzel.prompts.media.fetching.local_files import LocalFiles
from ouzel.prompts.media.picture import PictureLimits
from tests.prompts.media.files import LIMITS

SECRET = b"nobody may read this"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Returns a directory with a picture, beside a file that must not be read."""
    (tmp_path / "secret").write_bytes(SECRET)
    (tmp_path / "pictures-of-others").mkdir()
    (tmp_path / "pictures-of-others" / "secret").write_bytes(SECRET)
    directory = tmp_path / "pictures"
    (directory / "inner").mkdir(parents=True)
    (directory / "one").write_bytes(b"one")
    (directory / "inner" / "two").write_bytes(b"two")
    return directory


def read(directory: Path | str, file_path: str, limits: PictureLimits = LIMITS) -> bytes:
    return LocalFiles(str(directory)).read(file_path, "field", limits)


def refusal(directory: Path | str, file_path: str) -> str:
    with pytest.raises(InvalidRequest) as raised:
        read(directory, file_path)
    assert raised.value.param == "field"
    return str(raised.value)


def test_files_are_named_from_the_directory_or_from_the_root(directory: Path) -> None:
    for file_path in ("one", "./one", f"{directory}/one", f"{directory}//./one"):
        assert read(directory, file_path) == b"one"
    assert read(directory, "inner/two") == read(directory, f"{directory}/inner/two") == b"two"
    assert read(f"{directory}/", "one") == b"one"


def test_the_directory_may_be_a_link(directory: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(directory)

    for file_path in ("one", f"{link}/one", f"{directory}/one"):
        assert read(link, file_path) == b"one"


def test_links_may_stay_inside(directory: Path) -> None:
    (directory / "link").symlink_to("inner/two")
    (directory / "absolute").symlink_to(directory / "one")
    (directory / "turn").symlink_to("inner")

    assert [read(directory, name) for name in ("link", "absolute", "turn/two")] == [
        b"two",
        b"one",
        b"two",
    ]


def test_without_the_option_no_file_is_read(directory: Path) -> None:
    assert refusal("", f"{directory}/one") == (
        "field must be a data URL, the base64 of a PNG, JPEG, WebP or GIF, or a URL: "
        "this server reads no local files "
        f"(allowed_local_media_path), given {str(directory / 'one')!r}"
    )


@pytest.mark.parametrize(
    "name", ["../secret", "inner/../one", "..", "a/..", "/../secret", "..\\secret"]
)
def test_two_dots_are_refused(directory: Path, name: str) -> None:
    assert refusal(directory, name) == f"field must be a path without '..', given {name!r}"


OUTSIDE = "field must be the path of a file in the server's allowed_local_media_path"


def test_no_error_reveals_files_outside_the_directory(directory: Path, tmp_path: Path) -> None:
    (directory / "to-secret").symlink_to("../secret")
    (directory / "to-nothing").symlink_to("../nothing")
    (directory / "up").symlink_to("..")
    (tmp_path / "back").symlink_to(directory)

    for file_path in (
        *(
            f"{tmp_path}/secret",
            f"{tmp_path}/nothing",
            f"{tmp_path}/back/one",
            f"{tmp_path}/pictures-of-others/secret",
        ),
        *(
            "to-secret",
            "to-nothing",
            "up/secret",
            "up/nothing",
            "up",
            "up/pictures-of-others/secret",
        ),
        *(
            "/etc/passwd",
            "/",
            "/etc/nothing",
            "//etc/passwd",
            "one\0",
            "/etc/passwd\0",
            "one\ud800",
        ),
    ):
        assert refusal(directory, file_path) == OUTSIDE


@pytest.mark.parametrize(
    "name", ["nothing", "inner", "", ".", "one/x", "x" * 300, "x/" * 3000, "one " * 2000, "pipe"]
)
def test_anything_but_a_regular_file_is_refused(directory: Path, name: str) -> None:
    os.mkfifo(directory / "pipe")  # opening it would wait for a writer

    message = refusal(directory, name)

    assert re.match(r"field must be the path of a regular file that can be read, given '", message)
    assert len(message) < 300


def test_files_of_the_system_are_refused(directory: Path) -> None:
    (directory / "links").mkdir()
    for number, file_path in enumerate(
        ("/dev/zero", "/proc/self/mem", "/proc/self/environ", "/proc/self/fd/0")
    ):
        (directory / f"{number}").symlink_to(file_path)
        assert refusal(directory, f"{number}") == OUTSIDE
    assert "regular file" in refusal("/dev", "zero")


def test_a_long_file_is_refused(directory: Path) -> None:
    assert read(directory, "one", PictureLimits(max_bytes=3, max_pixels=1)) == b"one"
    with pytest.raises(
        InvalidRequest, match=r"^field must have <= 2 bytes \(max_media_bytes\), given 3$"
    ):
        read(directory, "one", PictureLimits(max_bytes=2, max_pixels=1))


def test_a_file_that_does_not_tell_its_length_is_read_up_to_the_limit() -> None:
    with pytest.raises(InvalidRequest, match=r"^field must have <= 1 bytes"):
        read("/proc/self", f"/proc/{os.getpid()}/status", PictureLimits(max_bytes=1, max_pixels=1))


def test_a_file_replaced_by_a_link_meanwhile_is_not_followed(
    directory: Path, tmp_path: Path
) -> None:
    """Another thread replaces a file, and a directory on the way to one, by links for a moment."""
    over = threading.Event()
    outside = tmp_path / "pictures-of-others"
    (directory / "changing").mkdir()
    (directory / "changing" / "secret").write_bytes(b"public")

    def exchange() -> None:
        while not over.is_set():
            (directory / "file").unlink(missing_ok=True)
            (directory / "file").symlink_to(tmp_path / "secret")
            (directory / "file").unlink()
            (directory / "file").write_bytes(b"public")
            (directory / "changing").rename(directory / "aside")
            (directory / "changing").symlink_to(outside)
            (directory / "changing").unlink()
            (directory / "aside").rename(directory / "changing")

    thread = threading.Thread(target=exchange)
    thread.start()
    found: set[bytes] = set()
    try:
        for _ in range(3000):
            for name in ("file", "changing/secret"):
                try:
                    found.add(read(directory, name))
                except InvalidRequest:
                    found.add(b"refused")
    finally:
        over.set()
        thread.join()

    assert found <= {b"public", b"", b"refused"}
    assert b"refused" in found
