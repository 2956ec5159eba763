"""The path from a sound to segments and words of text: windows, decoding, timestamps."""
