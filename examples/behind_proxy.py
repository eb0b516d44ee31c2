"""A chat behind a proxy that ends TLS, and serves it under a prefix which it takes off.

    pip install .    # in a checkout of motamot
    OPENAI_API_KEY=… python behind_proxy.py

    # nginx
    location /help/ {
        proxy_pass http://127.0.0.1:8000/;          # the last slash takes the prefix off
        proxy_set_header Host $http_host;
        proxy_set_header X-Forwarded-Proto $scheme;
        proxy_set_header X-Forwarded-For $remote_addr;
        proxy_http_version 1.1;
        proxy_read_timeout 75s;                     # a sign of life comes each 15 s
    }

Three things have to be said to the server: whose `X-Forwarded-*` to believe (else a stranger writes the address that
budgets are counted by, and an https page is taken for another site's), the prefix, and that addresses stay out of logs.
"""

from __future__ import annotations

import os

import uvicorn

from motamot import Assistant

chat = Assistant(system="You help the customers of a shop.")
app = chat.asgi

if __name__ == "__main__":
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=int(os.environ.get("PORT", "8000")),
        root_path=os.environ.get("PREFIX", "/help"),
        proxy_headers=True,
        forwarded_allow_ips=os.environ.get("PROXIES", "127.0.0.1"),
        access_log=False,
        server_header=False,
    )
