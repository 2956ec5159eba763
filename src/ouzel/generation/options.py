"""What a request asks of a generation, whichever endpoint it came through: complete but for its prompt.

An endpoint reads its body, then makes these; nothing after that looks at the body again.
"""

import msgspec

from ouzel.generation.demands import OutputForm, ToolUse
from ouzel.generation.speculation import SpeculationOptions
from ouzel.sampling import BeamSearchParams, SamplingFields


class Choosing(msgspec.Struct, frozen=True):
    """How many choices there are and how they are found, with every combination checked."""

    n: int
    best_of: int  # samples to choose from; n itself in a beam search
    beam_search: BeamSearchParams | None
    width_param: str = "use_beam_search"  # the request field that says how many beams there are

    @property
    def width(self) -> int:
        """The number of beams; 1 of none."""
        return 1 if self.beam_search is None else self.beam_search.width


NO_LIMIT = -1  # as a budget of reasoning


class GenerationOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Defaults of ours are filled in, contradictions are refused; the model's own defaults come with the prompt.

    `max_tokens` is what the request limits, None where it does not; `default_max_tokens` is the endpoint's limit, None
    where a choice may have what the prompt leaves, as it may with `takes_all_left`. `num_logprobs` and
    `num_prompt_logprobs` are alternatives per token, None where no logprobs are shown.
    """

    sampling: SamplingFields
    choosing: Choosing
    max_tokens: int | None
    max_tokens_param: str  # the request field that limits
    default_max_tokens: int | None = None
    takes_all_left: bool = False  # the request says so: no default limits it
    # more than the prompt leaves is refused; else a choice gets what it leaves
    is_strict: bool = False
    may_be_empty: bool = False  # there is something to answer without a token: max_tokens may be 0
    stop_strings: tuple[str, ...] | None  # None: those of the model's makers
    include_stop_str_in_output: bool
    skip_special_tokens: bool
    form: OutputForm | None = None
    # why the request's form is none, where that is no reason to refuse it
    unreadable_form: str = ""
    tool_use: ToolUse | None = None
    # most tokens of reasoning, NO_LIMIT, or None: the server's default
    thinking_token_budget: int | None = None
    speculation: SpeculationOptions = SpeculationOptions()
    num_logprobs: int | None = None
    num_prompt_logprobs: int | None = None
    num_prompts: int = 1  # of the same HTTP request, each with such a generation
    # the request field that says how many alternatives there are
    logprobs_param: str = "top_logprobs"
    logprob_token_ids: list[int] | None = None  # alternatives beside the most likely
    continues_prompt: bool  # the text goes on where the prompt ends (completions), rather than starting anew (chat)
    parses_output: bool  # into reasoning, calls and content; else all is content
    # all is content, though the model was asked to reason and call as it does
    shows_raw_output: bool = False
    priority: int
    cache_salt: str
    warnings: tuple[
        str, ...
    ] = ()  # for the client: parts of the request that the answer does not take into account

    @property
    def has_forced_form(self) -> bool:
        """Says whether a call must come, or an answer of a form: free text cannot end this output."""
        use = self.tool_use
        return self.form is not None or (use is not None and use.must_call and bool(use.tools))

    @property
    def most_tokens(self) -> int | None:
        """Returns the limit of the request, or else of the endpoint, where there is one."""
        return (
            self.default_max_tokens
            if self.max_tokens is None and not self.takes_all_left
            else self.max_tokens
        )
