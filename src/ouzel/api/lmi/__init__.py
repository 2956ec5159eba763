"""What clients of LMI (djl-serving's Large Model Inference container) send to /invocations, and what they read back.

One path takes several schemas; the body says which: `messages` is a chat, `inputs` LMI's own, `prompt` a completion.
docs/lmi.md says how each field is honoured.
"""
