"""Source files import only declared packages; texts name only working ways of installing them."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "ouzel"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# The files that may import a package of an extra. Their callers report a missing extra.
FILES_OF_EXTRAS = {
    "audio/ffmpeg_file.py": "audio",
    "file_text/pdf_text.py": "pdf",
    "file_text/text_job.py": "pdf",
    "observability/traces.py": "otel",
    "prompts/media/container_job.py": "video",
    "prompts/media/frame_display.py": "video",
    "prompts/media/document_job.py": "pdf",
    "hosted_tools/mcp/connection.py": "mcp",
    "hosted_tools/mcp/faults.py": "mcp",
    "hosted_tools/mcp/incoming.py": "mcp",
    "audio/writing/ffmpeg_writer.py": "audio",
    "hosted_tools/mcp/program.py": "mcp",
    "hosted_tools/web_search/ddgs_job.py": "ddgs",
    "hosted_tools/web_search/pdf_text_job.py": "pdf",
    "hosted_tools/web_search/readable_job.py": "web",
}
# Packages that no dependency of this project names: jinja2 requires markupsafe, only the
# processes of vLLM and Ray import these two, and work_files is a file of ours inside a sandbox.
OTHERS = {"markupsafe", "vllm", "ray", "work_files"}


def distribution(requirement: str) -> str:
    """Returns the name of a requirement as the packages' index compares names."""
    name = re.match(r"[\w.-]+", requirement)
    assert name
    return re.sub(r"[-_.]+", "-", name[0]).lower()


def imported_packages(path: Path) -> set[str]:
    """Returns the top-level packages that a file imports from outside this project and Python."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found - set(sys.stdlib_module_names) - {"ouzel"}


def test_every_imported_package_is_installed_with_ouzel() -> None:
    """Only the files of an extra may import packages of this extra."""
    distributions = packages_distributions()
    undeclared = []
    for path in SOURCE.rglob("*.py"):
        requirements = list(PROJECT["dependencies"])
        if extra := FILES_OF_EXTRAS.get(path.relative_to(SOURCE).as_posix()):
            requirements += PROJECT["optional-dependencies"][extra]
        declared = {distribution(requirement) for requirement in requirements}
        for package in imported_packages(path) - OTHERS:
            if declared.isdisjoint(map(distribution, distributions.get(package, [package]))):
                undeclared.append(f"{path.relative_to(ROOT)} imports {package}")
    assert undeclared == []


def test_no_text_says_to_install_from_the_index_before_the_first_release() -> None:
    """README.md may do so, because it is the package's page there (CONTRIBUTING.md, "Release")."""
    texts = [path for path in ROOT.rglob("*.md") if not {".venv", "node_modules"} & set(path.parts)]
    texts.remove(ROOT / "README.md")
    texts += [path for path in (ROOT / "deploy").rglob("*") if path.is_file()]
    texts += [*SOURCE.rglob("*.py"), ROOT / "pyproject.toml"]
    telling = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in texts
        for line in path.read_text().splitlines()
        if re.search(
            r"""(pip install|uvx|uv tool install|uv add) +["']?ouzel([\[='"`\s]|$)""", line
        )
    ]
    assert telling == []
