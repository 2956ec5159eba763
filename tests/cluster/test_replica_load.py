"""Tests the load that a replica reports."""

from ouzel.cluster.replica_load import ReplicaLoad, report_load
from ouzel.engine_client import EngineClient, EngineSpec
from tests.generation.generations import make_model


async def test_an_adapter_adds_nothing_to_the_load_of_its_model() -> None:
    engine = EngineClient(
        EngineSpec(factory="tests.api.engines:create_parrot", options={"vocab_size": 260}),
        in_thread=True,
    )
    info = await engine.start()
    model = make_model(engine)

    load = report_load([model, model.with_adapter("poet")])
    await engine.close()

    assert load["most_running"] == info.max_num_seqs
    assert ReplicaLoad.of(load) == ReplicaLoad(0, 0, info.num_blocks * info.block_size)


def test_a_replica_that_has_told_nothing_is_idle() -> None:
    assert ReplicaLoad.of({}).num_unfinished == 0
