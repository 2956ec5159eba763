"""What the engine's process of vLLM is made of, and the link to a server of it."""

from ouzel.checkpoint.hf_config import read_hf_config
from ouzel.checkpoint.model_files import read_added_tokens
from ouzel.engine_client import EngineSpec
from ouzel.engine_client.links import EngineLink, StartLink
from ouzel.model_store.model_directory import LocalModel
from ouzel.options.invalid_option import InvalidOption
from ouzel.options.options import Options
from ouzel.options.vllm_options import arguments_of
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
    """Returns those of vLLM's EngineArgs."""
    arguments = arguments_of(options.vllm, options.model, options.engine, options.given)
    return arguments | {"model": str(local.directory), "max_logprobs": options.limits.max_logprobs}


def _reasoning_marks(options: Options, local: LocalModel) -> tuple[str, str] | None:
    """Returns the marks between which vLLM can limit the reasoning: where there is one way to begin and to end it, each
    a token of its own. None where it cannot: a budget is refused then."""
    family = read_output_format(local.directory, options.model).reasoning
    marks = family.reasoning if family is not None else None
    if marks is None or not marks.are_exact or len(marks.starts) != 1 or len(marks.ends) != 1:
        return None
    start, end = marks.start.strip(), marks.end.strip()
    return (start, end) if {start, end} <= read_added_tokens(local.directory) else None


def link_to_server(options: Options, local: LocalModel) -> StartLink:
    """Raises InvalidOption for a URL or certificates that cannot be used."""
    from ouzel.backends.vllm.remote_link import RemoteLink  # noqa: PLC0415  slow to import, seldom needed
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
