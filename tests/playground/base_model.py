"""Serves a model without a chat template, which fills in the middle of a text."""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.api.byte_tokens import byte_tokenizer
from tests.api.serving import RunningServer, running_server
from tests.playground.middle_engine import MARKS


@contextmanager
def serving_base_model(*, max_model_len: int) -> Iterator[RunningServer]:
    with running_server(
        {"max_model_len": max_model_len},
        has_chat_template=False,
        tokenizer=byte_tokenizer(*MARKS),
        engine_factory="tests.playground.middle_engine:create_middle_parrot",
    ) as server:
        yield server
