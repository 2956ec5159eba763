"""Writes sound files while their samples are made: a player starts with the first block.

Rules
1. A writer gives the bytes of a block as soon as it has them. An encoder holds back less than
   a fifth of a second.
2. Samples beyond [-1, 1] are clipped.
3. PCM and WAV need no further package. FFmpeg encodes the other formats, with the extra `audio`.
"""
