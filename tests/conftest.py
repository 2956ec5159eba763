"""Asynchronous tests run on uvloop, as the server does; those of the engine client on asyncio's own loop as well."""

import asyncio
from collections.abc import Callable, Mapping

import pytest
import uvloop


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    both = item.path.name == "test_engine_client.py"
    return {"uvloop": uvloop.new_event_loop} | ({"asyncio": asyncio.new_event_loop} if both else {})
