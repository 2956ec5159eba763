"""Defines the options of vLLM as the engine: as a child process, or as a server elsewhere."""

from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from ouzel.config.option import option


class VllmConfig(msgspec.Struct, frozen=True, kw_only=True):
    heading: ClassVar[str] = "vLLM as the engine"

    engine: Annotated[
        Literal["openvino", "vllm"],
        option(
            "The engine: OpenVINO in this installation, or vLLM (needs --engine-python or "
            "--engine-url)."
        ),
    ] = "openvino"
    engine_python: Annotated[
        str,
        option(
            "The Python of an environment with vLLM 0.33; Ouzel need not be installed there.",
            unset="none",
        ),
    ] = ""
    engine_url: Annotated[
        str,
        Meta(pattern=r"^(https?://[^\s/?#@]+[^\s?#@]*)?$"),
        option(
            "A vLLM 0.33 server with /inference/v1/generate (vllm serve --enable-scale-out), as "
            "http://HOST:8000.",
            unset="none",
        ),
    ] = ""
    engine_api_key: Annotated[
        str,
        Meta(pattern=r"^[!-~]*$"),
        option(
            "The API key of --engine-url. Other users of the machine can read flags: prefer "
            "OUZEL_ENGINE_API_KEY.",
            unset="none",
            is_secret=True,
        ),
    ] = ""
    engine_ca_certs: Annotated[
        str,
        option(
            "PEM certificates of the issuers that are trusted for --engine-url.",
            unset="the issuers that the system trusts",
        ),
    ] = ""
    engine_priorities: Annotated[
        bool,
        option(
            "The server of --engine-url runs with --scheduling-policy priority; otherwise requests "
            "with a priority are refused."
        ),
    ] = False
    engine_wait_s: Annotated[
        float,
        Meta(ge=0, le=86400),
        option("Longest wait at the start for --engine-url."),
    ] = 600.0
    tensor_parallel_size: Annotated[
        int,
        Meta(ge=1, le=1024),
        option("GPUs over which vLLM divides each layer, with --engine-python."),
    ] = 1
    gpu_memory_utilization: (
        Annotated[
            float,
            Meta(gt=0, le=1),
            option(
                "Share of a GPU's memory for vLLM, with --engine-python.",
                unset="vLLM's own",
            ),
        ]
        | None
    ) = None
    engine_args: Annotated[
        str,
        option(
            'Further arguments of vLLM\'s EngineArgs, as a JSON object: {"enforce_eager": true}.',
            unset="none",
        ),
    ] = ""

    @property
    def is_chosen(self) -> bool:
        """Tells whether vLLM is the engine, by its name or by the address of its server."""
        return self.engine == "vllm" or bool(self.engine_url)
