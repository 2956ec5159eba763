"""English: texts in words -> words in the lexicons' phonemes, with rules for all other words."""
