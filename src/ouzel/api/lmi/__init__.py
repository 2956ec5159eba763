"""/invocations reads and answers as LMI does (djl-serving's Large Model Inference container).

One path takes several schemas; the body says which: `messages` is a chat, `inputs` LMI's own, `prompt` a completion.
docs/reference/lmi.md says how each field is honoured.
"""
