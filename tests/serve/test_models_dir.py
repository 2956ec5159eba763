"""The models of --models-dir are found by their files, and named by their paths."""

from pathlib import Path

from ouzel.serve.models_dir import list_models


def write(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def test_directories_and_gguf_files_are_models(tmp_path: Path) -> None:
    for name in (
        "a/config.json",
        "a/inner/config.json",  # files of the model a
        "org/b/config.json",
        "ir/openvino_model.xml",
        "one.Q4_K_M.gguf",
        "org/two.GGUF",
        "big-00001-of-00002.gguf",
        "big-00002-of-00002.gguf",
        "mmproj-one.gguf",
        ".hidden/config.json",
        ".hidden.gguf",
        "x/y/z/config.json",
        "notes.txt",
    ):
        write(tmp_path / name)

    assert list_models(str(tmp_path)) == {
        "a": tmp_path / "a",
        "big": tmp_path / "big-00001-of-00002.gguf",
        "ir": tmp_path / "ir",
        "one.Q4_K_M": tmp_path / "one.Q4_K_M.gguf",
        "org/b": tmp_path / "org" / "b",
        "org/two": tmp_path / "org" / "two.GGUF",
    }


def test_a_directory_that_is_gone_has_no_models(tmp_path: Path) -> None:
    assert list_models(str(tmp_path / "gone")) == {}


def test_links_to_directories_are_followed(tmp_path: Path) -> None:
    write(tmp_path / "elsewhere" / "config.json")
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "linked").symlink_to(tmp_path / "elsewhere")
    assert list(list_models(str(tmp_path / "models"))) == ["linked"]
