"""Runs an encoder on the texts of a step together, in one `infer`."""

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.encoder_model import EncoderModel
from ouzel.backends.openvino.library import ov
from ouzel.backends.openvino.pooling import VectorPooling
from ouzel.backends.openvino.runners.graph_request import GraphRequest
from ouzel.backends.openvino.token_heads import TokenHeads
from ouzel.engine.base import PoolingBatch
from ouzel.types.engine_info import EngineInfo

# This is added to the products of queries with keys that they do not attend to: padding, tokens
# outside of the window, expansion tokens.
_UNSEEN = np.float32(-1e9)


class EncoderRunner:
    """Runs an encoder; implements `PoolingRunner`.

    For a model that scores `pooling` and `heads` are None: its graph pools the rows. For a model
    without vectors of whole texts only `pooling` is None.
    """

    def __init__(
        self,
        compiled: ov.CompiledModel,
        model: EncoderModel,
        info: EngineInfo,
        pooling: VectorPooling | None,
        heads: TokenHeads | None,
    ) -> None:
        self.info = info
        self._model = model
        self._pooling = pooling
        self._heads = heads
        self._request = GraphRequest(compiled)

    def run(self, batch: PoolingBatch) -> list[NDArray[np.float32]]:
        inputs = _inputs(self._model, batch)
        self._request.run(
            {name: array for name, array in inputs.items() if self._request.has_input(name)}
        )
        output = self._request.output()
        if self._heads is None:
            return list(output.copy())
        wholes = None
        if self._pooling is not None and "text" in batch.forms:
            wholes = self._pooling.vectors(output, batch.begins)
        results = []
        for index, form in enumerate(batch.forms):
            if form == "text":
                assert wholes is not None, "the engine has checked the form"
                results.append(wholes[index])
            else:
                rows = output[batch.begins[index] : batch.begins[index + 1]]
                results.append(self._heads.apply(form, rows))
        return results

    def close(self) -> None:
        """Frees the memory; the runner cannot be used afterwards."""
        del self._request, self._model


def _inputs(model: EncoderModel, batch: PoolingBatch) -> dict[str, NDArray[np.generic]]:
    """Returns the inputs of the graph by name."""
    begins, token_ids = batch.begins, batch.token_ids
    lens = np.diff(begins)
    places = np.arange(int(lens.max()), dtype=np.int32)
    is_row = places[None, :] < lens[:, None]
    in_text = np.arange(len(token_ids), dtype=np.int64) - np.repeat(begins[:-1], lens)
    inputs: dict[str, NDArray[np.generic]] = {
        "input_ids": token_ids,
        "token_types": (in_text >= np.repeat(batch.second_begins, lens)).astype(np.int64),
        "position_ids": _positions(token_ids, in_text, begins, model.padding_id),
        "padded_rows": np.where(is_row, begins[:-1, None] + places[None, :], 0).astype(np.int32),
        "rows": np.flatnonzero(is_row.reshape(-1)).astype(np.int32),
        "mask": np.where(places[None, :] < batch.visible_lens[:, None], np.float32(0), _UNSEEN)[
            :, None, None, :
        ],
    }
    if model.window:
        distances = np.abs(places[:, None] - places[None, :])
        inputs["window_mask"] = np.where(distances <= model.window, np.float32(0), _UNSEEN)[
            None, None
        ]
    if model.num_tasks:
        inputs["task_weights"] = _task_weights(model, batch, lens)
    if model.num_labels:
        inputs["pooling_weights"] = _pooling_weights(model, begins)
    for name, rope in model.ropes.items():
        inputs[f"rope_cos.{name}"], inputs[f"rope_sin.{name}"] = rope.cos_sin(in_text)
    return inputs


def _positions(
    token_ids: NDArray[np.int64],
    in_text: NDArray[np.int64],
    begins: NDArray[np.int32],
    padding_id: int | None,
) -> NDArray[np.int64]:
    """Returns the position of each token.

    Positions count from 0. In RoBERTa they count from the padding token's id plus one, and the
    padding token itself has its id as position wherever it stands.
    """
    if padding_id is None:
        return in_text
    counted = token_ids != padding_id
    total = np.concatenate([[0], np.cumsum(counted)])
    in_own = total[1:] - np.repeat(total[begins[:-1]], np.diff(begins))
    return np.where(counted, in_own + padding_id, padding_id).astype(np.int64)


def _task_weights(
    model: EncoderModel, batch: PoolingBatch, lens: NDArray[np.int32]
) -> NDArray[np.float32]:
    """Returns 1 for the columns of the task of each token's text, else 0, [T, tasks * rank]."""
    is_chosen = batch.tasks[:, None] == 1 + np.arange(model.num_tasks)
    columns = np.repeat(is_chosen, model.task_rank, axis=1).astype(np.float32)
    return np.repeat(columns, lens, axis=0)


def _pooling_weights(model: EncoderModel, begins: NDArray[np.int32]) -> NDArray[np.float32]:
    """Returns weights [B, T]: 1 for the first token of each text, or equal weights for all its
    tokens.
    """
    lens = np.diff(begins)
    weights = np.zeros((len(lens), int(begins[-1])), np.float32)
    if model.score_pooling == "cls":
        weights[np.arange(len(lens)), begins[:-1]] = 1
    else:
        weights[np.repeat(np.arange(len(lens)), lens), np.arange(int(begins[-1]))] = np.repeat(
            1 / lens, lens
        )
    return weights
