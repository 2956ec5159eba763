"""Runs batches: many requests that may take hours, in the time that other requests leave.

 file ─validate─> lines in the store ─take─> LineRunner ─ask─> the API in this process
     ─finish─> results in the store ─write─> output file, error file

`BatchWorker` drives all of it. Servers that share a store share their batches, line by line.
"""
