"""Reads and answers /invocations as LMI does (djl-serving's Large Model Inference container).

One path takes several schemas; a field of the body tells them apart: `messages` is a chat, `inputs`
LMI's own schema, `prompt` a completion. docs/reference/lmi.md describes the support of each field.
"""
