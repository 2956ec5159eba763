"""What a request may demand of the output's form, and how the engine keeps it to that.

Pure Python turns a request's wishes into one grammar text (`formats`); in the engine's process llguidance turns that
text into token masks (`tokenizer`, `compiler`, `session`).
"""
