"""Runs `ouzel doctor` on the machine that runs the tests."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from ouzel import __version__
from ouzel.cli.app import main
from ouzel.config import ServerConfig
from ouzel.doctor.speed import measure_speeds
from tests.api.serving import running_server


def test_the_measurements_are_printed_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = main(["doctor", "--json", "--cache-dir", str(tmp_path)])
    report = json.loads(capsys.readouterr().out)
    assert status == int(any(finding["stops_serving"] for finding in report["findings"]))
    assert report["speeds"]["weight_gb_per_s"] > 0
    assert sum(speed["is_auto"] for speed in report["speeds"]["matrices"]) == 1
    assert report["software"]["extras"].keys() == {
        "audio",
        "ddgs",
        "documents",
        "mcp",
        "otel",
        "pdf",
        "postgres",
        "ray",
        "speech",
        "video",
        "web",
    }
    assert report["disks"][0]["path"] == str(tmp_path)
    assert {each["fit"] for each in report["estimates"]} <= {"fits", "if memory is freed", "no"}


def test_the_fitting_sizes_are_printed_without_measuring(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main(["doctor", "--no-measuring"])
    said = capsys.readouterr().out
    assert "speeds      not measured" in said
    assert "Qwen3-30B-A3B" in said
    assert max(map(len, said.split("MODEL")[0].splitlines())) <= 100


def test_a_port_that_is_taken_is_found_and_does_not_stop_serving(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        monkeypatch.setenv("OUZEL_PORT", str(port))
        status = main(["doctor", "--no-measuring"])
    said = capsys.readouterr().out
    assert f"127.0.0.1 port {port} is in use" in said
    assert "Serve on another port" in said
    assert status in (0, 1)  # 1 if the machine of the tests has less than a GiB free


def test_a_server_of_ours_is_known(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with running_server(config=ServerConfig(api_key=("sk-a",))) as server:
        monkeypatch.setenv("OUZEL_PORT", server.url.rpartition(":")[2])
        main(["doctor", "--no-measuring"])
    said = " ".join(capsys.readouterr().out.split())
    assert f"is in use, by Ouzel {__version__} with org/parrot, parrot" in said
    assert "another program" not in said


@pytest.mark.release("the doctor with little memory")
def test_with_little_memory_a_smaller_test_measures() -> None:
    speeds = measure_speeds(2**30)
    assert speeds.fastest.gflops >= speeds.auto.gflops > 0


def test_without_openvino_it_says_so_and_fails(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['openvino'] = None; from ouzel.cli.app import main; "
        "sys.exit(main(['doctor']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "OpenVINO cannot multiply matrices on this machine" in done.stdout
    assert "Traceback" not in done.stderr
