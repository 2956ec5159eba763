"""Cuts sound that arrives in pieces into turns, without HTTP.

bytes ─> Intake (16 kHz) ─> InputBuffer ─> TurnDetector (start, stop) ─> a Sound for each turn
"""
