"""Compares speech-to-text with faster-whisper, whisper.cpp and transformers, in turns."""
