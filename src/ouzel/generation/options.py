"""Defines the options of a generation, for all endpoints: complete except for the prompt.

An endpoint reads its body and makes these options; the body is not read again after that.
"""

import msgspec

from ouzel.generation.demands import OutputForm, ToolUse
from ouzel.generation.speculation import SpeculationOptions
from ouzel.sampling import BeamSearchParams, SamplingFields


class Choosing(msgspec.Struct, frozen=True):
    """The number of choices and the way to find them; every combination is checked."""

    n: int
    best_of: int  # samples to choose from; n in a beam search
    beam_search: BeamSearchParams | None
    width_param: str = "use_beam_search"  # the request field with the number of beams

    @property
    def width(self) -> int:
        """Returns the number of beams; 1 without a beam search."""
        return 1 if self.beam_search is None else self.beam_search.width


NO_LIMIT = -1  # no limit, for a budget of reasoning


class GenerationOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a request, with Ouzel's defaults filled in and contradictions refused.

    The model's own defaults are filled in with the prompt. `max_tokens` is the request's limit,
    None if it has none. `default_max_tokens` is the endpoint's limit; None: a choice may fill the
    context after the prompt, as with `takes_all_left`. `num_logprobs` and `num_prompt_logprobs`
    count the alternatives per token; None: no logprobs.
    """

    sampling: SamplingFields
    choosing: Choosing
    max_tokens: int | None
    max_tokens_param: str  # the request field of the limit
    default_max_tokens: int | None = None
    takes_all_left: bool = False  # the request asks for no default limit
    # refuse a limit beyond the context; otherwise a choice gets the rest of the context
    is_strict: bool = False
    may_be_empty: bool = False  # the answer has content without tokens: max_tokens may be 0
    stop_strings: tuple[str, ...] | None  # None: the stop strings of generation_config.json
    include_stop_str_in_output: bool
    skip_special_tokens: bool
    form: OutputForm | None = None
    # the reason why the request's form is unreadable, if that is no reason to refuse it
    unreadable_form: str = ""
    tool_use: ToolUse | None = None
    # maximum of reasoning tokens; NO_LIMIT; None: the server's default
    thinking_token_budget: int | None = None
    speculation: SpeculationOptions = SpeculationOptions()
    num_logprobs: int | None = None
    num_prompt_logprobs: int | None = None
    num_prompts: int = 1  # prompts of the same HTTP request, each with a generation
    # the request field with the number of alternatives
    logprobs_param: str = "top_logprobs"
    logprob_token_ids: list[int] | None = None  # alternatives beside the most likely ones
    # the text continues the prompt (completions), and is no new message (chat)
    continues_prompt: bool
    # the output is parsed into reasoning, calls and content; otherwise all is content
    parses_output: bool
    # all output is content, although the model was asked to reason and to call
    shows_raw_output: bool = False
    priority: int
    cache_salt: str
    # for the client: parts of the request that the answer ignores
    warnings: tuple[str, ...] = ()

    @property
    def has_forced_form(self) -> bool:
        """Tells whether a call or an answer of a form must come: free text cannot end this
        output.
        """
        use = self.tool_use
        return self.form is not None or (use is not None and use.must_call and bool(use.tools))

    @property
    def most_tokens(self) -> int | None:
        """Returns the token limit of the request, or of the endpoint; None if there is none."""
        if self.max_tokens is None and not self.takes_all_left:
            return self.default_max_tokens
        return self.max_tokens
