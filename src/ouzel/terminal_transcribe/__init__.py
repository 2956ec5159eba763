"""Turns sound files into text, for `ouzel transcribe`."""
