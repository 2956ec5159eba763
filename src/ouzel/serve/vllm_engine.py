"""Describes the engine process of vLLM, or the link to a vLLM server."""

from ouzel.checkpoint.hf_config import read_hf_config
from ouzel.checkpoint.model_files import read_added_tokens
from ouzel.engine_client import EngineSpec
from ouzel.engine_client.links import EngineLink, StartLink
from ouzel.model_store.model_directory import LocalModel
from ouzel.options.invalid_option import InvalidOption
from ouzel.options.options import Options
from ouzel.options.vllm_options import read_engine_arguments
from ouzel.serve.output_format import read_output_format

_FACTORY = "ouzel.backends.vllm.child_engine:create_engine"


def child_spec(options: Options, local: LocalModel) -> EngineSpec:
    return EngineSpec(
        factory=_FACTORY,
        options={
            "arguments": engine_arguments(options, local),
            "reasoning_marks": _reasoning_marks(options, local),
        },
        python=options.vllm.engine_python,
        log_level=options.observability.log_level,
        log_format=options.observability.log_format,
    )


def engine_arguments(options: Options, local: LocalModel) -> dict[str, object]:
    """Returns the arguments of vLLM's EngineArgs for a model."""
    arguments = read_engine_arguments(options.vllm, options.model, options.engine, options.given)
    return arguments | {"model": str(local.directory), "max_logprobs": options.limits.max_logprobs}


def _reasoning_marks(options: Options, local: LocalModel) -> tuple[str, str] | None:
    """Returns the marks of the reasoning, with which vLLM limits it.

    vLLM needs exactly one start mark and one end mark, each a single token. Returns None for other
    models: a reasoning budget is then refused.
    """
    family = read_output_format(local.directory, options.model).reasoning
    marks = family.reasoning if family is not None else None
    if marks is None or not marks.are_exact or len(marks.starts) != 1 or len(marks.ends) != 1:
        return None
    start, end = marks.start.strip(), marks.end.strip()
    return (start, end) if {start, end} <= read_added_tokens(local.directory) else None


def link_to_server(options: Options, local: LocalModel) -> StartLink:
    """Returns a function that connects to the vLLM server of the options.

    Raises InvalidOption if the URL or the certificates cannot be used.
    """
    # These modules are slow to import and rarely needed.
    from ouzel.backends.vllm.remote_link import RemoteLink  # noqa: PLC0415
    from ouzel.backends.vllm.remote_server import ServerFacts  # noqa: PLC0415
    from ouzel.client.base import ApiFailure  # noqa: PLC0415
    from ouzel.client.http_client import HttpClient, tls_context  # noqa: PLC0415

    vllm = options.vllm
    config = read_hf_config(local.directory)
    language = config.text_model().values
    vocab_size = config.text_model().size("vocab_size")
    try:
        tls = tls_context(ca_file=vllm.engine_ca_certs)
        url = HttpClient(vllm.engine_url, api_key=vllm.engine_api_key, tls=tls).root
    except ApiFailure as failure:
        raise InvalidOption(f"--engine-url: {failure}") from failure
    dtype = str(language.get("dtype") or language.get("torch_dtype") or "unknown")
    quantisation = config.values.get("quantization_config")
    method = quantisation.get("quant_method") if isinstance(quantisation, dict) else None
    facts = ServerFacts(
        url=url,
        model_type=config.text("model_type", "unknown"),
        vocab_size=vocab_size,
        weights=str(method or dtype),
        dtype=dtype,
        max_num_seqs=options.engine.max_num_seqs,
        max_model_len=options.model.max_model_len,
        has_priorities=vllm.engine_priorities,
        wait_s=vllm.engine_wait_s,
    )

    async def start(spec: EngineSpec) -> EngineLink:
        client = HttpClient(vllm.engine_url, api_key=vllm.engine_api_key, tls=tls)
        return RemoteLink(facts, client, look_every_s=spec.heartbeat_every_s)

    return start
