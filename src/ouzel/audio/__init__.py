"""Reads sound files as mono samples at 16 kHz, and computes the features that models hear.

Rules
1. A sound has at most `max_audio_seconds`; its samples lie in a temporary file, so its length costs
   no memory.
2. Sound files are untrusted: a process with limits of time, memory and file size decodes them.
3. WAV files need no further package. FFmpeg decodes the other formats, with the extra `audio`.
"""
