"""This package pronounces English: texts become words, and words become phonemes."""
