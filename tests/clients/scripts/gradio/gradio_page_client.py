"""Sends a message to a chat page of gradio with gradio's own client.

Usage: `python gradio_page_client.py ROOT`.
"""

import sys

import gradio as gr
from gradio_client import Client

if __name__ == "__main__":
    page = gr.load_chat(f"{sys.argv[1]}/v1/", model="ouzel", token="none", streaming=True)
    _, address, _ = page.launch(prevent_thread_lock=True, quiet=True, server_name="127.0.0.1")
    job = Client(address, verbose=False).submit(
        {"text": "Hello!", "files": []}, api_name="/open_api_stream"
    )
    said = job.result()
    pieces = job.outputs()
    page.close()

    assert said == "Hello! How can I help you?", said
    assert pieces[-1] == said
