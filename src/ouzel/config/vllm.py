"""Another engine than our own: vLLM in an interpreter of its own, or a server of it elsewhere."""

from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from ouzel.config.option import option


class VllmConfig(msgspec.Struct, frozen=True, kw_only=True):
    heading: ClassVar[str] = "vLLM as the engine"

    engine: Annotated[
        Literal["openvino", "vllm"],
        option(
            "What computes: OpenVINO in this installation, or vLLM (needs --engine-python or --engine-url)."
        ),
    ] = "openvino"
    engine_python: Annotated[
        str,
        option(
            "The Python of an environment that has vLLM 0.33; nothing of Ouzel is installed there.",
            unset="none",
        ),
    ] = ""
    engine_url: Annotated[
        str,
        Meta(pattern=r"^(https?://[^\s/?#@]+[^\s?#@]*)?$"),
        option(
            "A server of vLLM 0.33 that answers /inference/v1/generate (vllm serve --enable-scale-out): http://HOST:8000.",
            unset="none",
        ),
    ] = ""
    engine_api_key: Annotated[
        str,
        Meta(pattern=r"^[!-~]*$"),
        option(
            "The API key of --engine-url. Other users of the machine can read flags: prefer OUZEL_ENGINE_API_KEY.",
            unset="none",
            is_secret=True,
        ),
    ] = ""
    engine_ca_certs: Annotated[
        str,
        option(
            "PEM certificates of who may issue that of --engine-url.",
            unset="those that the system trusts",
        ),
    ] = ""
    engine_priorities: Annotated[
        bool,
        option(
            "The server of --engine-url was started with --scheduling-policy priority; else a request's priority is "
            "refused."
        ),
    ] = False
    engine_wait_s: Annotated[
        float,
        Meta(ge=0, le=86400),
        option(
            "How long the server of --engine-url may take until it answers, when this one starts."
        ),
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
                "Share of a GPU's memory that vLLM may take, with --engine-python.",
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
        """Tells whether vLLM is the engine: its name, or the address of its server, says so."""
        return self.engine == "vllm" or bool(self.engine_url)
