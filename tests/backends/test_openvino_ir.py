"""IR directories: stateful models with scaled-dot-product attention, served through paging.

optimum-intel 2.2.0 exported `optimum_ir/mistral-int8` from the golden mistral checkpoint:
`optimum-cli export openvino --task text-generation-with-past --weight-format int8`.
benchmarks/stateful_ir.py writes the other directories.
"""

import shutil
from pathlib import Path

import numpy as np
import pytest

from benchmarks.stateful_ir import write_stateful_ir
from ouzel.backends.openvino import create_runner
from ouzel.backends.openvino.graph.paged import PagedGraph
from ouzel.backends.openvino.ir.paging import refuse_fixed_positions, rename_state_inputs
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.runners.state_tables import state_tables
from ouzel.config import EngineConfig, ModelConfig
from ouzel.errors import ModelLoadError
from tests.backends.conftest import Golden, read_golden
from tests.backends.forward import Driver, relative_error
from tests.release_only import release_only

OPTIMUM_IR = Path(__file__).parent / "optimum_ir"
EXACT = EngineConfig(precision="f32", kv_cache_dtype="f32", kv_cache_gib=0.02)


@pytest.fixture(params=["qwen3", *release_only("graphs of further models", "llama")])
def exported(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Golden]:
    golden = read_golden(request.param)
    write_stateful_ir(golden.directory, tmp_path / "ir", "f32")
    shutil.copy(golden.directory / "config.json", tmp_path / "ir")
    return tmp_path / "ir", golden


def test_an_exported_model_agrees_with_transformers(exported: tuple[Path, Golden]) -> None:
    directory, golden = exported
    runner = create_runner(ModelConfig(model=str(directory)), EXACT)
    assert (runner.info.weights, runner.info.vocab_size) == ("ir", 320)
    _, logits = Driver(runner).prefill(golden.prompt, 7)
    assert relative_error(logits, golden.logits) < 1e-3
    assert Driver(runner).greedy(golden.prompt, len(golden.greedy)) == golden.greedy


def test_an_export_of_optimum_agrees_with_transformers() -> None:
    golden = read_golden("mistral")
    runner = create_runner(ModelConfig(model=str(OPTIMUM_IR / "mistral-int8")), EXACT)
    assert (runner.info.model_type, runner.info.weights) == ("mistral", "ir")
    for chunk_len in (len(golden.prompt), 7):
        _, logits = Driver(runner).prefill(golden.prompt, chunk_len)
        # the error is the rounding to int8; 8e-7 measured with fp32
        assert relative_error(logits, golden.logits) < 0.06


def test_a_repeated_step_gives_the_same_logits() -> None:
    golden = read_golden("mistral")
    engine = EngineConfig(precision="f32", kv_cache_dtype="u8", kv_cache_gib=0.02)
    driver = Driver(create_runner(ModelConfig(model=str(OPTIMUM_IR / "mistral-int8")), engine))
    sequence, _ = driver.prefill(golden.prompt, len(golden.prompt))
    end = sequence.num_cached
    first = driver.step([(sequence, [5])])
    sequence.num_cached = end
    np.testing.assert_array_equal(driver.step([(sequence, [5])]), first)


def test_sampled_rows_are_gathered_before_the_output_layer(exported: tuple[Path, Golden]) -> None:
    directory, golden = exported
    driver = Driver(create_runner(ModelConfig(model=str(directory)), EXACT))
    sequences = [driver.sequence(), driver.sequence()]
    logits = driver.step([(sequences[0], golden.prompt), (sequences[1], golden.prompt[:5])])
    assert relative_error(logits, golden.logits[[39, 4]]) < 1e-3


def test_the_error_names_the_file_of_missing_weights(exported: tuple[Path, Golden]) -> None:
    directory, _ = exported
    (directory / "openvino_model.bin").unlink()
    with pytest.raises(
        ModelLoadError,
        match=r"openvino_model.bin, the weights of openvino_model.xml, cannot be read",
    ):
        create_runner(ModelConfig(model=str(directory)), EXACT)


def test_the_error_of_a_broken_graph_names_the_export_command(
    exported: tuple[Path, Golden],
) -> None:
    directory, _ = exported
    (directory / "openvino_model.xml").write_text("<net>")
    with pytest.raises(ModelLoadError, match="optimum-cli export openvino"):
        create_runner(ModelConfig(model=str(directory)), EXACT)


def with_positions(*, are_input: bool) -> ov.Model:
    graph = PagedGraph()
    positions = graph.input("position_ids", [-1], ov.Type.f32)
    return graph.finish(
        ops.sin(positions if are_input else graph.input("others", [-1], ov.Type.f32))
    )


def test_a_graph_without_an_input_for_positions_is_refused() -> None:
    refuse_fixed_positions(with_positions(are_input=True), Path("model.xml"))
    with pytest.raises(
        ModelLoadError, match=r"model.xml cannot be served: position_ids must be an input"
    ):
        refuse_fixed_positions(with_positions(are_input=False), Path("model.xml"))


def test_inputs_of_states_get_the_names_of_ouzel() -> None:
    """The graph has the names of OpenVINO's transformation before, and Ouzel's names after."""
    graph = PagedGraph()
    names = ("la.past_lens", "la.block_indices", "la.block_indices_begins", "la.cache_interval")
    inputs = [graph.input(name, [-1], ov.Type.i32) for name in names]
    tables = [
        graph.input(f"{kind}_state_table.0", [-1, 4, 3], ov.Type.i32) for kind in ("conv", "ssm")
    ]
    used = ops.concat(
        [*inputs, *(ops.reshape(table, ops.constant([-1]), False) for table in tables)], 0
    )
    model = graph.finish(used)
    rename_state_inputs(model)
    found = {port.get_any_name() for port in model.inputs}
    assert {
        "state_slots",
        "state_slots_begins",
        "state_interval",
        "state.conv.0",
        "state.ssm.0",
    } <= found
    assert not [name for name in found if name.startswith("la.")]
    assert [table.row_shape for table in state_tables(model)] == [(4, 3), (4, 3)]
