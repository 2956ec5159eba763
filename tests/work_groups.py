"""Groups the tests that share a process, and replaces processes that die.

The tests of a golden checkpoint share a process, as do the tests of each other file, because they
share objects that are slow to make. If a process dies (a fault in native code, a hang), the current
test has failed and is not run again. The tests behind it go to another process, and a new process
takes the place of the dead one.
"""

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

from tests.backends import GOLDEN, GOLDEN_NAMES

VISION_NAMES = [path.name for path in (GOLDEN.parent / "golden_vision").iterdir()]
VISION_FILES = (
    "openvino_two_way_prompts",
    "openvino_vision",
    "openvino_whole_images",
    "openvino_refused_images",
    "seeing_families",
)
# The names of the golden checkpoints that a file's tests load, by the file.
CHECKPOINTS = {
    f"tests/backends/test_{file}.py": names
    for names, files in (
        (GOLDEN_NAMES, ("openvino_golden", "openvino_positions", "openvino_scheduling")),
        (VISION_NAMES, VISION_FILES),
    )
    for file in files
}


class WorkGroups(LoadFileScheduling):
    def _split_scope(self, nodeid: str) -> str:
        """Returns the golden checkpoint that the test's parameters name, or else the file."""
        file, _, test = nodeid.partition("::")
        names = CHECKPOINTS.get(file)
        if names is None or "[" not in test:
            return file
        parameters = test.partition("[")[2].rstrip("]")
        name = max(
            (name for name in names if f"{parameters}-".startswith(f"{name}-")),
            key=len,
            default="",
        )
        folder = "golden" if names is GOLDEN_NAMES else "golden_vision"
        return f"{folder}/{name}" if name else file

    def _reschedule(self, node: WorkerController) -> None:
        """Gives the process its next tests.

        A process runs a test only when it knows the next one, so a group of a single test, which a
        dead process has left, needs another group behind it.
        """
        # Another dead process may have a successor that still collects.
        if node not in self.registered_collections or node.shutting_down:
            return
        super()._reschedule(node)
        if self.workqueue and self._pending_of(self.assigned_work[node]) == 1:
            self._assign_work_unit(node)

    def remove_node(self, node: WorkerController) -> str | None:
        """Returns the test during which the process died, which xdist itself would run again."""
        groups = self.assigned_work.pop(node)
        waiting = [
            nodeid for group in groups.values() for nodeid, is_done in group.items() if not is_done
        ]
        if not waiting:
            return None
        for name, group in groups.items():
            if left := {nodeid: False for nodeid in group if nodeid in waiting[1:]}:
                self.workqueue[name] = left
        for other in self.assigned_work:
            self._reschedule(other)
        return waiting[0]


class WorkerDeaths:
    """Fails a run in which a process died, and reports the death."""

    def __init__(self) -> None:
        self._said: dict[str, str] = {}  # process id -> place of the death

    def pytest_xdist_make_scheduler(
        self, config: pytest.Config, log: Producer
    ) -> LoadFileScheduling | None:
        return WorkGroups(config, log) if config.getoption("dist") == "loadfile" else None

    def pytest_testnodedown(self, node: WorkerController, error: object) -> None:
        if error is not None:
            self._said[node.gateway.id] = "outside of any test"

    def pytest_handlecrashitem(self, crashitem: str, report: pytest.TestReport) -> None:
        self._said[report.node.gateway.id] = f"in {crashitem}"

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._said and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._said:
            terminalreporter.section("processes that died", red=True)
            for name, where in self._said.items():
                terminalreporter.line(f"{name} died {where}")
