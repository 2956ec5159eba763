"""Turns texts into the phonemes of Kokoro, a text-to-speech model.

Rules
1. A result has only characters of the model's vocabulary. No word is dropped silently: a word that
   no lexicon has is pronounced by espeak-ng, or by rules for its letters.
2. English reads the lexicons of the package misaki, which the extra `speech` installs. They are
   data: no code of that package is imported.
3. espeak-ng is under the GPL, so it is a command in a process of its own, with a time limit.
4. Texts are untrusted: each regular expression starts at few places and has bounded repetitions.
"""
