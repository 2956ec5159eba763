"""Turns options and a prompt into a request for the engine, or refuses them."""

import logging

from msgspec.structs import replace

from ouzel.errors import InvalidRequest
from ouzel.generation.demands import OutputForm, ToolUse
from ouzel.generation.lenient_forms import HonouredForms, honour_foreign_tools, honour_forms
from ouzel.generation.options import NO_LIMIT, Choosing, GenerationOptions
from ouzel.generation.reasoning_budget import PARAM, reasoning_budget
from ouzel.generation.records import GenerationRequest
from ouzel.generation.sampling_values import fit_beams, fit_max_tokens, resolve_sampling
from ouzel.generation.served_model import ServedModel
from ouzel.generation.speculation import make_speculation_params
from ouzel.parsers.bare_calls import BareCalls
from ouzel.prompts.prompt import Prompt
from ouzel.types.engine_info import EngineInfo
from ouzel.types.engine_request import Grammar, ReasoningBudget

# logprobs in an answer to one request; a token always has _ALWAYS_ALTERNATIVES
_MAX_ALTERNATIVES = 2**20
_ALWAYS_ALTERNATIVES = 1024
_MAX_REASONS_LEN = 2000  # characters of the reasons in one log line

logger = logging.getLogger(__name__)


def accept(
    options: GenerationOptions,
    prompt: Prompt,
    model: ServedModel,
    *,
    request_id: str,
    arrival_s: float,
) -> GenerationRequest:
    """Fills in the values that depend on the model and the prompt.

    Raises InvalidRequest for options that this model cannot honour, and ContextLengthExceeded for
    tokens that exceed the context.
    """
    info = model.engine.info
    _check_beams(options.choosing, info)
    if options.max_tokens == 0 and not options.may_be_empty:
        raise InvalidRequest("must be >= 1, given 0", field=options.max_tokens_param)
    num_tokens = _num_tokens(options, len(prompt.token_ids), model, info)
    _check_num_alternatives(options, num_prompt_tokens=len(prompt.token_ids), num_tokens=num_tokens)
    forms = _honour_forms(options, prompt, model)
    options = replace(options, form=forms.form)
    if forms.dropped:
        reasons = "; ".join(forms.dropped)[:_MAX_REASONS_LEN]
        logger.warning(
            "request %s: answered without a format that cannot be honoured: %s", request_id, reasons
        )
    return GenerationRequest(
        request_id=request_id,
        prompt=prompt,
        params=resolve_sampling(
            options.sampling,
            model.sampling_defaults,
            max_tokens=num_tokens,
            beam_search=options.choosing.beam_search,
            num_logprobs=options.num_logprobs,
            num_prompt_logprobs=options.num_prompt_logprobs,
            logprob_token_ids=options.logprob_token_ids,
            vocab_size=info.vocab_size,
            tokenizer=model.tokenizer,
        ),
        n=options.choosing.n,
        best_of=options.choosing.best_of,
        stop_strings=_stop_strings(options, model),
        include_stop_str_in_output=options.include_stop_str_in_output,
        skip_special_tokens=options.skip_special_tokens,
        continues_prompt=options.continues_prompt,
        parses_output=options.parses_output and not options.shows_raw_output,
        max_hidden_tokens=_max_hidden_tokens(options, model),
        tools=() if options.tool_use is None else options.tool_use.tools,
        bare_calls=_bare_calls(options) if model.reads_bare_calls else None,
        grammar=forms.grammar,
        dropped_formats=forms.dropped,
        may_drop_grammar=model.has_lenient_formats,
        reasoning_budget=_reasoning_budget(options, prompt, model, num_tokens=num_tokens),
        speculation=make_speculation_params(
            options.speculation, model.sampling_defaults, model.renderer
        ),
        priority=options.priority,
        cache_salt=options.cache_salt,
        arrival_s=arrival_s,
        warnings=options.warnings,
    )


def _honour_forms(options: GenerationOptions, prompt: Prompt, model: ServedModel) -> HonouredForms:
    """Makes the grammar that the request demands.

    Raises InvalidRequest for a part that may not be dropped.
    """

    def make(use: ToolUse | None, form: OutputForm | None) -> Grammar | None:
        return model.make_grammar(
            use,
            form,
            prompt_text=prompt.text_to_parse if options.parses_output else None,
            continues_prompt=options.continues_prompt,
            guards_calls=not options.continues_prompt,
        )

    if not model.has_lenient_formats:
        return honour_foreign_tools(options.tool_use, options.form, make)
    forms = honour_forms(options.tool_use, options.form, make)
    if not options.unreadable_form:
        return forms
    return HonouredForms(forms.grammar, forms.form, (options.unreadable_form, *forms.dropped))


def _check_beams(choosing: Choosing, info: EngineInfo) -> None:
    """Raises InvalidRequest for a beam search that the engine cannot run."""
    width, name = choosing.width, choosing.width_param
    if choosing.beam_search is not None and not info.has_beam_search:
        raise InvalidRequest(
            f"needs an engine with beam search, given {width} beams ({info.backend})", field=name
        )
    if width > info.max_num_seqs:
        raise InvalidRequest(
            f"must be <= {info.max_num_seqs} in a beam search, given {width}", field=name
        )


def _check_num_alternatives(
    options: GenerationOptions, *, num_prompt_tokens: int, num_tokens: int
) -> None:
    """Raises InvalidRequest for an answer whose logprobs would need too much memory."""
    num_choices = options.choosing.best_of * options.num_prompts
    for num_logprobs, field, num_positions in (
        (options.num_logprobs, options.logprobs_param, num_tokens * num_choices),
        (options.num_prompt_logprobs, "prompt_logprobs", num_prompt_tokens * options.num_prompts),
    ):
        limit = max(_ALWAYS_ALTERNATIVES, _MAX_ALTERNATIVES // max(num_positions, 1))
        if num_logprobs is not None and num_logprobs > limit:
            raise InvalidRequest(
                f"must be <= {limit} with {num_positions} tokens, given {num_logprobs}", field=field
            )


def _bare_calls(options: GenerationOptions) -> BareCalls | None:
    """Returns the calls that a whole answer in JSON can be read as.

    Returns None if such an answer is content, or if calls must have marks.
    """
    use = options.tool_use
    if use is None or not use.tools or use.must_call or options.form is not None:
        return None
    if options.continues_prompt or not options.parses_output or options.shows_raw_output:
        return None
    return BareCalls(tools=use.tools, is_parallel=use.is_parallel, guides_all=use.guides_all)


def _reasoning_budget(
    options: GenerationOptions, prompt: Prompt, model: ServedModel, *, num_tokens: int
) -> ReasoningBudget | None:
    """Returns the limit of the reasoning; None if there is no limit or no reasoning.

    There is no reasoning if a form is the whole output. A forced form without a budget from the
    request gets the server's budget, at most half of the choice's `num_tokens`, so that tokens are
    left for the form.
    """
    given = options.thinking_token_budget
    if given == NO_LIMIT or (options.form is not None and not options.parses_output):
        return None
    if options.choosing.beam_search is not None:
        if given is None:
            return None
        raise InvalidRequest(f"must not be given in a beam search, given {given}", field=PARAM)
    if given is None and not (options.has_forced_form and model.forced_thinking_budget != NO_LIMIT):
        return None
    max_tokens = min(model.forced_thinking_budget, num_tokens // 2) if given is None else given
    return reasoning_budget(
        min(max_tokens, model.engine.info.max_model_len),  # the engine takes 64-bit numbers
        output_format=model.output_format,
        tokenizer=model.tokenizer,
        prompt_text=prompt.text_to_parse,
        continues_prompt=options.continues_prompt,
        has_tools=options.tool_use is not None and bool(options.tool_use.tools),
        is_required=given is not None,
    )


def _stop_strings(options: GenerationOptions, model: ServedModel) -> tuple[str, ...]:
    """Returns the request's stop strings.

    Without them, the stop strings of generation_config.json.
    """
    if options.stop_strings is not None:
        return options.stop_strings
    makers = model.sampling_defaults.stop_strings
    return (makers,) if isinstance(makers, str) else tuple(makers or ())


def _max_hidden_tokens(options: GenerationOptions, model: ServedModel) -> int | None:
    """Returns a limit for requests without a limit of tokens, except beam searches.

    The tokens of beams come only after the search.
    """
    is_limited = options.most_tokens is not None or options.choosing.beam_search is not None
    return None if is_limited else model.max_hidden_tokens or None


def _num_tokens(
    options: GenerationOptions, num_prompt_tokens: int, model: ServedModel, info: EngineInfo
) -> int:
    """Returns the token limit of each choice, within the limits of server, context and KV cache.

    Only a beam search has a limit by the KV cache.
    """
    limit, wanted, param = model.max_tokens_limit, options.max_tokens, options.max_tokens_param
    is_strict = options.is_strict and wanted is not None
    if limit is not None and (wanted or 0) > limit:
        raise InvalidRequest(
            f"must be <= {limit}, this server's max_tokens_limit, given {wanted}", field=param
        )
    if wanted is None:
        default = None
        if not options.takes_all_left:
            default = options.most_tokens or model.sampling_defaults.max_new_tokens
        wanted = min((number for number in (default, limit) if number is not None), default=None)
    num_tokens = fit_max_tokens(
        wanted,
        is_strict=is_strict,
        num_prompt_tokens=num_prompt_tokens,
        max_model_len=info.max_model_len,
        param=param,
    )
    choosing = options.choosing
    if choosing.beam_search is None:
        return num_tokens
    return fit_beams(
        num_tokens,
        choosing.beam_search.width,
        is_strict=is_strict,
        num_prompt_tokens=num_prompt_tokens,
        info=info,
        param=param,
        width_param=choosing.width_param,
    )
