"""Gradio's ChatInterface over a generator that yields the answer so far, as its guide shows for OpenAI."""

import os
from collections.abc import Iterator
from typing import Any

import gradio as gr
from openai import OpenAI

client = OpenAI()


def chat(message: str, history: list[dict[str, Any]]) -> Iterator[str]:
    """The answer so far, again and again."""
    history.append({"role": "user", "content": message})
    stream = client.chat.completions.create(messages=history, model="gpt-4o-mini", stream=True)
    said = ""
    for chunk in stream:
        said += chunk.choices[0].delta.content or ""
        yield said


gr.ChatInterface(chat).launch(server_port=int(os.environ["PORT"]))
