"""A server whose model repeats the user's message, reasoning and tool calls included."""

from contextlib import AbstractContextManager

from ouzel.config import ServerConfig
from ouzel.hosted_tools.code_interpreter.containers import Containers
from ouzel.parsers.families.hermes import HERMES
from ouzel.parsers.registry import THINKING_ONLY, OutputFormat
from ouzel.responses.hosted.kinds import NO_HOSTED_KINDS, HostedKinds
from tests.api.serving import RunningServer, running_server
from tests.prompts.families import QWEN


def thinking_server(
    store_url: str,
    *,
    max_model_len: int = 4096,
    step_s: float = 0.0,
    engine_factory: str = "create_parrot",
    config: ServerConfig = ServerConfig(),  # noqa: B008  it is frozen
    hosted: HostedKinds = NO_HOSTED_KINDS,
    containers: Containers | None = None,
) -> AbstractContextManager[RunningServer]:
    return running_server(
        {"max_model_len": max_model_len, "step_s": step_s},
        chat_template=QWEN,
        output_format=OutputFormat(calls=HERMES, reasoning=THINKING_ONLY),
        engine_factory=engine_factory,
        store_url=store_url,
        config=config,
        hosted=hosted,
        containers=containers,
    )
