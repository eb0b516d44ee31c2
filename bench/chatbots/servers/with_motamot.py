"""motamot with a tool, on a server of its own."""

import os

import uvicorn

from motamot import Assistant
from motamot.server.options import Options
from motamot.server.site import Site


def weather(city: str) -> str:
    """The weather in a city."""
    return f"It is sunny in {city}."


assistant = Assistant(tools=[weather], store="exam.sqlite3")
# What one address may ask is meant for strangers; an exam asks more.
site = Site([assistant], options=Options(requests_per_hour=1000, tokens_per_hour=10_000_000, address_factor=20))

if __name__ == "__main__":
    uvicorn.run(site, port=int(os.environ["PORT"]))
