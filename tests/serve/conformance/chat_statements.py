"""Lists the statements of OVMS's pages on chats."""

from tests.serve.conformance.chat_checks import (
    IMPOSSIBLE,
    UNIQUE,
    UNREAD,
    answers_without_the_format,
    answers_without_the_keyword,
    counts_in_streams,
    ends_with_text_and_reason,
    ends_with_the_reason_alone,
    has_beams,
    has_lists_and_texts,
    has_lists_or_texts,
    has_no_cap_of_4000,
    has_random_seeds,
    has_role_and_text_first,
    has_samples,
    has_seed_0,
    has_three_paths,
    hides_stop_in_streams,
    reads_generation_config,
    reasons_first,
    refuses_messages_without_content,
    refuses_reserved_names,
    shows_special_tokens_beside_calls,
    shows_stop_in_streams,
    shows_the_raw_text,
    starts_with_the_role,
    takes_messages_without_content,
    takes_no_other_host,
    takes_pictures,
    takes_structural_tags,
    uses_40,
    uses_all_tokens,
    wants_a_model,
)
from tests.serve.conformance.statements import (
    EVERYWHERE,
    LEFT_OUT,
    Statement,
    answer,
    chat,
    is_refused,
    texts,
)

NEWER = "A, the newest page, says otherwise"
OPENAI = "OpenAI's form, which its clients rely on, stays the default"

RELIES = "a client that asks for a form relies on it"

STATEMENTS = (
    Statement(
        "`POST /v3/chat/completions`; also below `/v1` and `/v3/v1`", "A B C", has_three_paths
    ),
    Statement(
        "the first chunk of a stream is the role and `content: null`",
        "A",
        starts_with_the_role,
        f"{OPENAI}: the role comes with the first text",
        has_role_and_text_first,
    ),
    Statement(
        "the last chunk with text has the `finish_reason`",
        "A",
        ends_with_text_and_reason,
        f"{OPENAI}: the reason has a chunk of its own",
        ends_with_the_reason_alone,
    ),
    Statement("`reasoning_content` comes before the content", "A", reasons_first),
    Statement("pictures by data URL, URL and local path", "A", takes_pictures),
    Statement(
        "a picture at a host that `--allowed_media_domains` does not name is refused",
        "A",
        takes_no_other_host,
    ),
    Statement(
        "messages without a content, or with an empty list",
        "A B C",
        takes_messages_without_content,
        "an empty message is mostly a mistake of the client",
        refuses_messages_without_content,
    ),
    Statement(
        "unknown fields are ignored",
        "A B C",
        lambda peer: chat(peer, unknown_field=1).status_code == 200,
    ),
    Statement("usage in streams: a chunk at the end, null before", "A B C", counts_in_streams),
    Statement(
        "`model` is required: 412 without it",
        "A B C",
        wants_a_model,
        "it may be left out: the first model answers",
        lambda peer: answer(chat(peer, model=LEFT_OUT))["model"] == "llama3",
    ),
    Statement(
        "streams show the stop string unless told otherwise",
        "A B C",
        shows_stop_in_streams,
        "OpenAI's meaning stays the default: it is hidden",
        hides_stop_in_streams,
    ),
    Statement(
        "`include_stop_str_in_output: false` is an error in streams",
        "A B C",
        lambda peer: is_refused(
            chat(peer, stream=True, include_stop_str_in_output=False), "include_stop"
        ),
        "it works: the stop string is hidden",
        hides_stop_in_streams,
        EVERYWHERE,
    ),
    Statement(
        "with `ignore_eos`, `max_tokens` is at most 4000",
        "B",
        lambda peer: not has_no_cap_of_4000(peer),
        "A and C have no such limit any more",
        has_no_cap_of_4000,
        EVERYWHERE,
    ),
    Statement(
        "defaults of generation_config.json count before built-in ones",
        "A",
        reads_generation_config,
    ),
    Statement("`response_format` takes XGrammar's structural tags", "A", takes_structural_tags),
    Statement(
        "a format that cannot be processed is not imposed",
        "A",
        answers_without_the_format,
        f"{RELIES}: 400, which `--lenient-formats` turns off",
        lambda peer: is_refused(chat(peer, response_format=IMPOSSIBLE), "response_format"),
    ),
    Statement(
        "nor are single keywords of a schema that cannot be processed (`uniqueItems`)",
        "A",
        answers_without_the_keyword,
        f"{RELIES}: 400, which `--lenient-formats` turns off",
        lambda peer: is_refused(chat(peer, response_format=UNIQUE), "response_format"),
    ),
    Statement(
        "`messages`, `eos_token`, … in `chat_template_kwargs` are an error",
        "A",
        refuses_reserved_names,
    ),
    Statement(
        "`chat_template_kwargs` that the template does not read have no effect",
        "A",
        lambda peer: (
            chat(peer, **UNREAD).status_code == 200 and texts(peer, **UNREAD) == texts(peer)
        ),
        "a name that nothing reads is mostly misspelt: 400",
        lambda peer: is_refused(chat(peer, **UNREAD), "unread_by_the_template"),
    ),
    Statement(
        "`skip_special_tokens: false` gives the raw text, without parsers",
        "A",
        shows_the_raw_text,
        "special tokens are shown, and calls and reasoning are still told apart",
        shows_special_tokens_beside_calls,
    ),
    Statement(
        "`tool_calls` is always a list, `content` always a text",
        "A C",
        has_lists_and_texts,
        f"{OPENAI}: no list without calls, and null beside calls",
        has_lists_or_texts,
    ),
    Statement(
        "`n` above `best_of` is an error",
        "A B C",
        lambda peer: is_refused(chat(peer, n=3, best_of=2), "n"),
    ),
    Statement(
        "`best_of` is the number of beams",
        "A B C",
        has_beams,
        "OpenAI's meaning stays the default: this number of samples, the best returned",
        has_samples,
    ),
    Statement(
        "`length_penalty` has no effect without beams",
        "A B C",
        lambda peer: chat(peer, length_penalty=2).status_code == 200,
        "a parameter without effect is refused by default: 400",
        lambda peer: is_refused(chat(peer, length_penalty=2), "length_penalty"),
    ),
    Statement(
        "`diversity_penalty` has no effect without groups of beams",
        "B",
        lambda peer: chat(peer, diversity_penalty=1).status_code == 200,
        "a parameter without effect is refused by default: 400",
        lambda peer: is_refused(chat(peer, diversity_penalty=1), "diversity_penalty"),
    ),
    Statement("`top_k` is 40 when sampling", "A", uses_40),
    Statement(
        "`top_k` is all tokens when sampling", "B C", uses_all_tokens, NEWER, uses_40, EVERYWHERE
    ),
    Statement("`seed` is random", "A", has_random_seeds),
    Statement("`seed` is 0", "B C", has_seed_0, NEWER, has_random_seeds, EVERYWHERE),
    Statement(
        "`num_assistant_tokens` beside `assistant_confidence_threshold` is an error",
        "A C",
        lambda peer: is_refused(
            chat(peer, num_assistant_tokens=5, assistant_confidence_threshold=0.5),
            "assistant_confidence_threshold",
        ),
    ),
)
