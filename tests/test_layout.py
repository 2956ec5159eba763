"""`tools/house/layout.py` finds hints about the layout of the package."""

import ast
from pathlib import Path

import pytest

from tools.house.layout import (
    COPY_LINES,
    all_imported,
    copies,
    files_by_folder,
    files_that_check_models,
    find_modules_in_cycles,
    importers_of_cli,
    is_near,
    readers_of_config,
)


def trees(**texts: str) -> dict[Path, ast.Module]:
    """Returns trees by path; `a__b` is the file `src/ouzel/a/b.py`."""
    return {
        Path(f"src/ouzel/{name.replace('__', '/')}.py"): ast.parse(text)
        for name, text in texts.items()
    }


def test_only_modules_that_reach_themselves_are_in_cycles() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set[str](), "e": {"e"}}
    assert find_modules_in_cycles(graph) == ["b", "c"]


def test_imports_in_functions_and_for_types_are_imports() -> None:
    text = "if TYPE_CHECKING:\n    import p.a\ndef f():\n    from p import b\n    import other\n"
    assert all_imported(ast.parse(text), {"p", "p.a", "p.b"}) == {"p.a", "p.b"}


def test_folders_of_families_do_not_count() -> None:
    paths = [Path("engine/core.py"), Path("engine/__init__.py"), Path("engine/models/qwen.py")]
    assert files_by_folder(paths) == {"engine": 1}


@pytest.mark.parametrize(("num_lines", "expected"), [(284, False), (285, True), (301, False)])
def test_a_file_is_near_a_limit_from_below(num_lines: int, expected: bool) -> None:
    assert is_near(num_lines, 300) is expected


def test_rooms_that_import_cli_are_named() -> None:
    read = trees(
        cli__app="import ouzel.cli.options",
        cluster__ray="from ouzel.cli.options import Options",
        bench__run="from ouzel import client",
    )
    read[Path("tools/house/hops.py")] = ast.parse("from ouzel import cli")
    assert importers_of_cli(read) == ["cluster", "tools"]


@pytest.mark.parametrize(
    "body",
    [
        'return read_json_object(directory / "config.json")',
        'return json.loads((directory / "config.json").read_bytes())',
        'path = self.directory / "config.json"\n    return read_record(path)',
    ],
)
def test_a_function_that_opens_config_json_is_found(body: str) -> None:
    assert readers_of_config(trees(a=f"def f():\n    {body}\n")) == ["src/ouzel/a.py f"]


@pytest.mark.parametrize(
    "body",
    [
        'return (directory / "config.json").is_file()',
        'return read_record(values, directory / "config.json")',
        'return read_json_object(directory / "1_Pooling" / "config.json")',
    ],
)
def test_a_function_that_only_names_config_json_is_not_found(body: str) -> None:
    assert readers_of_config(trees(a=f"def f():\n    {body}\n")) == []


def test_files_that_check_models_are_found_by_the_name_of_the_check() -> None:
    read = trees(a="check_with_model(x)", b="check_model_name(x)")
    assert files_that_check_models(read) == ["src/ouzel/a.py"]


def test_a_copy_is_reported_once_with_both_places() -> None:
    same = "".join(f"value_{number} = {number}\n\n" for number in range(COPY_LINES + 3))
    imports = "import a\n" * 20
    texts = {Path("a.py"): imports + same, Path("b.py"): imports + "x = 1\n" + same}
    assert copies(texts) == ["b.py:22 repeats a.py:21"]
