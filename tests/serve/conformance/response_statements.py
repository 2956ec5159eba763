"""Lists the statements of OVMS's page on responses."""

from tests.serve.conformance.chat_checks import IMPOSSIBLE, UNREAD
from tests.serve.conformance.chat_statements import RELIES
from tests.serve.conformance.response_checks import (
    answers_without_the_format,
    begins_with_the_id,
    counts_events,
    echoes_always,
    echoes_only_given,
    hardcodes_fields,
    has_a_null_time,
    has_an_id_of_chance,
    has_an_id_of_the_time,
    has_beams,
    has_events_of_a_summary,
    has_events_of_reasoning,
    has_random_seeds,
    has_reasoning_text,
    has_samples,
    has_seed_0,
    hides_stop_in_streams,
    lets_kwargs_win,
    names_the_call,
    puts_the_message_at_1,
    reason,
    refuses_a_contradiction,
    says_the_truth,
    shows_stop_in_streams,
    summarizes,
    takes_both_forms_of_names,
    takes_both_forms_of_tools,
    thinks_for_any_effort,
    times_only_completed,
    uses_40,
    uses_all_tokens,
)
from tests.serve.conformance.statements import (
    EVERYWHERE,
    LEFT_OUT,
    Statement,
    answer,
    is_refused,
    output_texts,
    respond,
)

OPENAI = "OpenAI's meaning stays the default"
NEWER = "A, OVMS's newest page, says otherwise"

STATEMENTS = (
    Statement(
        "`POST /v3/responses`; also below `/v1`",
        "E",
        lambda peer: all(
            respond(peer, path=path).status_code == 200
            for path in ("/v3/responses", "/v1/responses")
        ),
    ),
    Statement(
        "`model` is required: 412 without it",
        "E",
        lambda peer: respond(peer, model=LEFT_OUT).status_code == 412,
        "it may be left out: the first model answers",
        lambda peer: answer(respond(peer, model=LEFT_OUT))["model"] == "llama3",
    ),
    Statement(
        "streams show the stop string unless told otherwise",
        "E",
        shows_stop_in_streams,
        f"{OPENAI}: it is hidden",
        hides_stop_in_streams,
    ),
    Statement(
        "`include_stop_str_in_output: false` is an error in streams",
        "E",
        lambda peer: is_refused(
            respond(peer, stream=True, include_stop_str_in_output=False), "include_stop"
        ),
        "it works: the stop string is hidden",
        hides_stop_in_streams,
        EVERYWHERE,
    ),
    Statement(
        "a format that cannot be processed is not imposed",
        "E",
        answers_without_the_format,
        f"{RELIES}: 400, which `--lenient-formats` turns off",
        lambda peer: is_refused(respond(peer, response_format=IMPOSSIBLE), "response_format"),
    ),
    Statement("tools nested as in chats, and flat", "E", takes_both_forms_of_tools),
    Statement("`tool_choice` with a nested function, and flat", "E", takes_both_forms_of_names),
    Statement(
        "`reasoning.effort` low, medium and high: each enables thinking", "E", thinks_for_any_effort
    ),
    Statement(
        "`chat_template_kwargs` count before `reasoning.effort`",
        "E",
        lets_kwargs_win,
        "a request that contradicts itself is a 400 by default",
        refuses_a_contradiction,
    ),
    Statement(
        "`chat_template_kwargs` that the template does not read have no effect",
        "E",
        lambda peer: (
            respond(peer, **UNREAD).status_code == 200
            and output_texts(peer, **UNREAD) == output_texts(peer)
        ),
        "a name that nothing reads is mostly misspelt: 400",
        lambda peer: is_refused(respond(peer, **UNREAD), "unread_by_the_template"),
    ),
    Statement(
        "`best_of` is the number of beams",
        "E",
        has_beams,
        "this number of samples by default, the best returned",
        has_samples,
    ),
    Statement(
        "`length_penalty` has no effect without beams",
        "E",
        lambda peer: respond(peer, length_penalty=2).status_code == 200,
        "a parameter without effect is refused by default: 400",
        lambda peer: is_refused(respond(peer, length_penalty=2), "length_penalty"),
    ),
    Statement(
        "streams have `n` 1 only",
        "E",
        lambda peer: is_refused(respond(peer, stream=True, n=2, best_of=2), "n"),
    ),
    Statement(
        "`top_k` is all tokens when sampling", "E", uses_all_tokens, NEWER, uses_40, EVERYWHERE
    ),
    Statement("`seed` is 0", "E", has_seed_0, NEWER, has_random_seeds, EVERYWHERE),
    Statement(
        "`id` is `resp-` and the time",
        "E",
        has_an_id_of_the_time,
        (
            "two responses of one second must differ, and nobody may guess the id of a "
            "stored one: `resp_` and chance"
        ),
        has_an_id_of_chance,
        EVERYWHERE,
    ),
    Statement(
        "`store`, `parallel_tool_calls`, `metadata`, … are constants",
        "E",
        hardcodes_fields,
        "they work here, and the response has the values that hold",
        says_the_truth,
        EVERYWHERE,
    ),
    Statement(
        "`temperature` and `top_p` are there only if they were given",
        "E",
        echoes_only_given,
        "OpenAI always returns them, says the page too",
        echoes_always,
        EVERYWHERE,
    ),
    Statement(
        "`completed_at` is there only when it is completed",
        "E",
        times_only_completed,
        f"{OPENAI}: null before",
        has_a_null_time,
    ),
    Statement(
        "`incomplete_details.reason` is `max_tokens`",
        "E",
        lambda peer: reason(peer) == "max_tokens",
        f"{OPENAI}: `max_output_tokens`",
        lambda peer: reason(peer) == "max_output_tokens",
    ),
    Statement(
        "a reasoning item has a `summary` of `summary_text`",
        "E",
        summarizes,
        f"{OPENAI}: a summary is for those who ask by `reasoning.summary`; others read `content`",
        has_reasoning_text,
    ),
    Statement(
        "`response.created` and `response.in_progress` come first, with the response's id",
        "E",
        begins_with_the_id,
    ),
    Statement(
        (
            "reasoning has the events `reasoning_summary_part.added`, `…_text.delta`, "
            "`…_text.done`, `…_part.done`"
        ),
        "E",
        has_events_of_a_summary,
        f"{OPENAI}: `reasoning_text.delta` and `.done` unless a summary is asked for",
        has_events_of_reasoning,
    ),
    Statement("behind reasoning, the message has `output_index` 1", "E", puts_the_message_at_1),
    Statement("`function_call_arguments.delta` has the `call_id`", "E", names_the_call),
    Statement("`sequence_number` grows with each event", "E", counts_events),
)
