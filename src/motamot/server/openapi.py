"""What the API offers, as an OpenAPI document: written by hand, beside the routes, and held against them by tests."""

from __future__ import annotations

from typing import Any

import msgspec

from motamot import __version__
from motamot.answer import (
    Cited,
    Ended,
    Outcome,
    Reasoning,
    Routed,
    Started,
    Text,
    ToolCalled,
    ToolReturned,
    TurnEnded,
    Usage,
)
from motamot.limits import Limits
from motamot.protocols.ui_message_request import MESSAGES

__all__ = ["document"]

Json = dict[str, Any]

_EVENTS = (Started, Routed, Text, Reasoning, ToolCalled, ToolReturned, Cited, TurnEnded, Ended)
_STRING: Json = {"type": "string"}
_REFUSED = {
    "400": "The request is not one that is taken; `field` says where, `limit` what was passed.",
    "401": "A secret, a login or a key is needed.",
    "403": "A page of another site that is not listed.",
    "404": "There is no such thing, or it is not yours.",
    "405": "Another method.",
    "406": "`Accept` must name event streams.",
    "408": "The body did not come in time.",
    "409": "The key was used for another question.",
    "413": "The body is too large.",
    "415": "The body must be JSON, and not compressed.",
    "421": "This server does not answer to that Host.",
    "429": "A visitor's, an address's or a day's share is used up; `Retry-After` says when to come back.",
    "431": "The request's head is too large.",
    "500": "A fault of ours.",
    "502": "The model could not answer.",
    "503": "The server is full, ends, or cannot write its books.",
    "504": "The model took too long.",
}
_EVERYWHERE = ("400", "405", "408", "421", "431", "500", "503")
_OF_QUESTIONS = ("401", "403", "404", "409", "413", "415", "429")


def document(limits: Limits, root: str = "") -> Json:
    """The document. root: the path under which the app is mounted."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "motamot",
            "version": __version__,
            "description": "A model's answer, word for word and word by word: asked, followed, stopped, read again.",
        },
        "servers": [{"url": root or "/"}],
        "paths": _paths(limits),
        "components": {
            "schemas": _schemas(),
            "securitySchemes": {
                "secret": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "The visitor's secret, which the client makes: 22 to 128 of A-Z, a-z, 0-9, - and _.",
                },
                "cookie": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": "motamot_visitor",
                    "description": "Over https `__Host-motamot_visitor`, which only this host itself can set.",
                },
                "v1_key": {"type": "http", "scheme": "bearer", "description": "A key of the operator's, for /v1."},
                "operator_key": {"type": "http", "scheme": "bearer", "description": "The operator's own key."},
            },
        },
    }


_VISITOR: list[Json] = [{"secret": []}, {"cookie": []}, {}]  # without either, one is a new visitor, and gets the cookie


def _paths(limits: Limits) -> Json:
    return {
        "/": {"get": _operation("A page with the chat.", {"200": _of("text/html", _STRING)}, security=[])},
        **_widget(),
        **_native(limits),
        **_others(limits),
        **_ui_message(limits),
        **_v1(limits),
        **_ag_ui(limits),
        **_operations(),
    }


# The widget -----------------------------------------------------------------------------------------------------------


def _widget() -> Json:
    def file(summary: str, kind: str) -> Json:
        answers = {"200": _of(kind, _STRING), "304": {"description": "It is the same."}}
        return {"get": _operation(summary, answers, security=[])}

    return {
        "/widget.js": file("The chat for any page, as a classic script.", "text/javascript"),
        "/widget.mjs": file("The same as an ES module.", "text/javascript"),
        "/icon.svg": file("The page's icon.", "image/svg+xml"),
        "/api/widget": {
            "get": _operation(
                "Who answers here, and what a client must know to ask.",
                {"200": _of("application/json", _ref("Introduction"))},
                "403",
                security=[],
            )
        },
    }


# Native ---------------------------------------------------------------------------------------------------------------


def _native(limits: Limits) -> Json:
    asking = _body(_question(limits))
    whole = {"200": _of("application/json", _ref("Answer")), **_failed(_ref("Answer"))}
    stream = {"200": _events('One answer event per event: `id: <exchange>.<n>`, `data: {"type": …}`, `ended` last.')}
    nothing = {"204": {"description": "There is nothing behind what you have."}}
    return {
        "/api/chat": {"post": _operation("Ask, and get the whole answer.", whole, *_OF_QUESTIONS, body=asking)},
        "/api/chat/stream": {
            "post": _operation(
                "Ask, and get the answer as it comes. Under a key that was used, the same answer is joined.",
                stream | nothing,
                *_OF_QUESTIONS,
                body=asking,
                parameters=[_after()],
            )
        },
        "/api/exchanges/{name}/events": {
            "get": _operation(
                "Follow an answer, or go on behind an event: `Last-Event-ID`, or `after`.",
                stream | nothing,
                "401",
                "403",
                "404",
                "429",
                parameters=[
                    _in_path("name", "The exchange's id, or its key."),
                    _after(),
                    _in_query("resumable", {"enum": ["true", "false"]}, "Whether this reader can come back."),
                ],
            )
        },
        "/api/exchanges/{name}/stop": {
            "post": _operation(
                "Stop an answer; told when its model has been let go. Idempotent.",
                {
                    "200": _of("application/json", _ref("Stopped")),
                    "202": _of(
                        "application/json",
                        _ref("Stopped"),
                        "There is nothing of that name: a question that comes under it soon is stopped at once.",
                    ),
                },
                "401",
                "403",
                "404",
                "413",
                "415",
                parameters=[_in_path("name", "The exchange's id, or its key.")],
                body=_body(
                    _object(
                        seen=_optional({"type": "integer", "minimum": 0}, "Number of the last event that was shown.")
                    ),
                    required=False,
                ),
            )
        },
        "/api/conversations/{name}": {
            "get": _operation(
                "The transcript: what was asked, and what was shown.",
                {"200": _of("application/json", _ref("Transcript"))},
                "401",
                "403",
                "404",
                parameters=[_in_path("name", "The conversation's id.")],
            ),
            "delete": _operation(
                "Delete it, and stop what runs in it. What it cost stays in the ledger.",
                {"204": {"description": "It is gone."}},
                "401",
                "403",
                "404",
                parameters=[_in_path("name", "The conversation's id.")],
            ),
        },
    }


def _question(limits: Limits) -> Json:
    name = {"type": ["string", "null"], "maxLength": limits.key_bytes}
    return _object(
        ["message"],
        message={"type": "string", "minLength": 1, "maxLength": limits.message_bytes, "pattern": r"\S"},
        conversation={**name, "description": "The conversation to go on with."},
        assistant={**name, "description": "The assistant's name; without one, the first."},
        key={**name, "description": "The client's name for this question: asked again under it, its answer is joined."},
        resumable={"type": ["boolean", "null"], "description": "Whether the client can come back after a loss."},
        replaces={**name, "description": "The exchange that this one is asked again for."},
    )


# Guitar Alchemist's, and EventSource ----------------------------------------------------------------------------------


def _others(limits: Limits) -> Json:
    turn = _object(["role", "content"], role={"enum": ["user", "assistant"]}, content=_STRING)
    asked = _object(
        ["message"],
        message={"type": "string", "minLength": 1, "pattern": r"\S"},
        conversationHistory={"type": ["array", "null"], "items": turn, "maxItems": 50},
        useSemanticSearch={"type": ["boolean", "null"]},
    )
    name = {"type": "string", "maxLength": limits.key_bytes}
    stream = _events('Routing as JSON, then text, a `data:` line per line of it; `[DONE]`, or `{"error": …}`, last.')
    failed = {code: _of("application/json", _ref("PlainError"), _REFUSED[code]) for code in ("500", "503")}
    return {
        "/api/chatbot/chat": {
            "post": _operation(
                "Ask with the history, and get the whole answer in Guitar Alchemist's shape.",
                {"200": _of("application/json", _ref("NaturalAnswer")), **failed},
                *_OF_QUESTIONS,
                body=_body(asked),
                error="PlainError",
            )
        },
        "/api/chatbot/chat/stream": {
            "post": _operation(
                "The same, as it comes.", {"200": stream}, *_OF_QUESTIONS, body=_body(asked), error="PlainError"
            )
        },
        "/flux": {
            "get": _operation(
                "Ask with an address alone, for a plain `EventSource`; closing it stops the model.",
                {
                    "200": _events('`{"morceau": …}` pieces; `event: fin`, `event: erreur` or `event: arret` last.'),
                    "204": {"description": "A browser that came back has had it all: it asks no more."},
                },
                *("401", "403", "404", "406", "409", "429"),
                parameters=[
                    _in_query(
                        "message",
                        {"type": "string", "minLength": 1, "maxLength": limits.opening_bytes, "pattern": r"\S"},
                        "Without it, the assistant's opening question.",
                    ),
                    _in_query("conversation", name),
                    _in_query("assistant", name),
                    _in_query("key", name),
                    {"name": "Last-Event-ID", "in": "header", "schema": _STRING},
                ],
            )
        },
    }


# The AI SDK's ---------------------------------------------------------------------------------------------------------


def _ui_message(limits: Limits) -> Json:
    name: Json = {"type": "string", "minLength": 1, "maxLength": limits.key_bytes}
    optional = {**name, "type": ["string", "null"]}
    asked = _object(
        ["id", "messages"],
        id={**name, "description": "The chat's."},
        messages={
            "type": "array",
            "items": _ref("UIMessage"),
            "minItems": 1,
            "maxItems": MESSAGES,
            "description": "The last is the question, and the user's; of those before it only the ids count.",
        },
        trigger={"enum": ["submit-message", "regenerate-message", None]},
        messageId={**optional, "description": "What is asked again: the answer's id, or the question's."},
        assistant={**optional, "description": "The assistant's name; without one, the first."},
        resumable={"type": ["boolean", "null"], "description": "Whether the client can come back after a loss."},
    )
    parts = {"type": "array", "items": _ref("UIPart")}
    told = _object(
        ["success", "outcome", "shown"],
        success={"const": True},
        outcome={"enum": [*map(str, Outcome), None]},
        shown={"type": "integer"},
    )
    chat = _in_path("chat", "The chat's id.")
    stream = {"200": _events("Chunks of the UI message stream v1; `finish`, then `[DONE]`, last.")}
    return {
        "/api/ui-message": {
            "post": _operation(
                "Ask as `useChat` does. A message that was asked already is joined.",
                stream,
                *_OF_QUESTIONS,
                body=_body(asked),
                error="Sentence",
            )
        },
        "/api/ui-message/{chat}/stream": {
            "get": _operation(
                "Come back to a chat: its answer from the first chunk.",
                stream | {"204": {"description": "Nothing is under way."}},
                *("401", "403", "404", "429"),
                parameters=[chat],
                error="Sentence",
            )
        },
        "/api/ui-message/{chat}/stop": {
            "post": _operation(
                "Stop a chat's answer; told when its model has been let go. Idempotent.",
                {
                    "200": _of("application/json", told),
                    "202": _of("application/json", told, "There is nothing to stop; a question that is named will be."),
                },
                *("401", "403", "404", "413", "415"),
                parameters=[chat],
                body=_body(
                    _object(
                        assistantMessage={"anyOf": [_object(["id", "parts"], id=name, parts=parts), {"type": "null"}]},
                        activeStreamId={**optional, "description": "The id of the answer that is meant."},
                        messageId={**optional, "description": "The id of the question that is meant."},
                    ),
                    required=False,
                ),
                error="Sentence",
            )
        },
    }


# OpenAI's -------------------------------------------------------------------------------------------------------------


def _v1(limits: Limits) -> Json:
    asked = _object(
        ["messages"],
        model={"type": ["string", "null"], "maxLength": limits.key_bytes, "description": "The assistant's name."},
        messages={"type": "array", "items": _ref("Message"), "minItems": 1},
        stream={"type": ["boolean", "null"]},
        stream_options=_object(include_usage={"type": ["boolean", "null"]}) | {"type": ["object", "null"]},
        tools={
            "type": ["array", "null"],
            "items": _ref("Tool"),
            "description": "The caller's own: their calls are given back.",
        },
        max_tokens={"type": ["integer", "null"], "minimum": 1},
        max_completion_tokens={"type": ["integer", "null"], "minimum": 1},
        temperature={"type": ["number", "null"], "minimum": 0, "maximum": 2},
        top_p={"type": ["number", "null"], "minimum": 0, "maximum": 1},
    )
    answer: Json = {
        "description": "A `chat.completion`, or with `stream` its chunks and `[DONE]`.",
        "content": {
            "application/json": {"schema": _ref("Completion")},
            "text/event-stream": {"schema": _object(["data"], data=_STRING)},
        },
    }
    failed = {code: _of("application/json", _ref("OpenAIError"), _REFUSED[code]) for code in ("502", "503", "504")}
    key: list[Json] = [{"v1_key": []}]
    return {
        "/v1/chat/completions": {
            "post": _operation(
                "Ask as clients of OpenAI's API do.",
                {"200": answer, **failed},
                *_OF_QUESTIONS,
                body=_body(asked),
                security=key,
                error="OpenAIError",
            )
        },
        "/v1/models": {
            "get": _operation(
                "The assistants.",
                {"200": _of("application/json", _ref("Models"))},
                "401",
                "403",
                security=key,
                error="OpenAIError",
            )
        },
        "/v1/models/{name}": {
            "get": _operation(
                "One of them.",
                {"200": _of("application/json", _ref("Model"))},
                *("401", "403", "404"),
                parameters=[_in_path("name")],
                security=key,
                error="OpenAIError",
            )
        },
    }


# AG-UI's --------------------------------------------------------------------------------------------------------------


def _ag_ui(limits: Limits) -> Json:
    name: Json = {"type": "string", "minLength": 1, "maxLength": limits.key_bytes}
    asked = _object(
        ["threadId", "runId", "messages"],
        threadId={**name, "description": "The client's name for the conversation."},
        runId={**name, "description": "The client's name for the run: asked again under it, its run is joined."},
        protocolVersion={"description": "From 1.0 on the outcome `cancelled` is used."},
        messages={"type": "array", "items": _ref("RunMessage"), "minItems": 1},
        tools={
            "type": ["array", "null"],
            "items": _ref("RunTool"),
            "description": "The client's own: their calls are given back.",
        },
        context={
            "type": ["array", "null"],
            "items": _object(["description", "value"], description=_STRING, value=_STRING),
            "description": "Told to the model as the visitor's words.",
        },
        resume={"type": ["array", "null"], "maxItems": 0, "description": "There are no interrupts here."},
        state={},
        forwardedProps={},
    )
    return {
        "/api/ag-ui": {
            "post": _operation(
                "Run, as AG-UI's clients do.",
                {"200": _events("AG-UI's events; `RUN_FINISHED` or `RUN_ERROR` last.")},
                *_OF_QUESTIONS,
                "406",
                body=_body(asked),
                parameters=[
                    _in_query(
                        "assistant",
                        {"type": "string", "maxLength": limits.key_bytes},
                        "The assistant's name; without one, the first.",
                    )
                ],
            )
        }
    }


# Operations -----------------------------------------------------------------------------------------------------------


def _operations() -> Json:
    status = {"200": _of("application/json", _object(["status"], status=_STRING))}
    return {
        "/healthz": {"get": _operation("Whether the process lives.", status, security=[])},
        "/readyz": {"get": _operation("Whether it takes questions.", status, security=[])},
        "/metrics": {
            "get": _operation(
                "What it counts, for Prometheus.",
                {"200": _of("text/plain", _STRING)},
                "401",
                "429",
                security=[{"operator_key": []}],
            )
        },
        "/dashboard": {
            "get": _operation(
                "The operator's pages, for a browser (docs/dashboard.md). Who is not signed in is sent to the sign-in.",
                {"200": _of("text/html", _STRING), "303": {"description": "To the sign-in."}},
                security=[],
            )
        },
        "/openapi.json": {
            "get": _operation("This document.", {"200": _of("application/json", {"type": "object"})}, security=[])
        },
    }


# Parts ----------------------------------------------------------------------------------------------------------------


def _operation(
    summary: str,
    responses: Json,
    *refused: str,
    body: Json | None = None,
    parameters: list[Json] | None = None,
    security: list[Json] | None = None,
    error: str = "Error",
) -> Json:
    told = {code: _refusal(code, error) for code in sorted({*_EVERYWHERE, *refused})} | responses
    operation: Json = {
        "summary": summary,
        "responses": dict(sorted(told.items())),
        "security": _VISITOR if security is None else security,
    }
    if parameters:
        operation["parameters"] = parameters
    if body is not None:
        operation["requestBody"] = body
    return operation


def _refusal(code: str, error: str) -> Json:
    plain = error in ("Error", "Sentence")
    schema = _ref("Error") if plain else {"anyOf": [_ref(error), _ref("Error")]}
    told = _of("application/json", schema, _REFUSED[code])
    if error == "Sentence":
        told["content"] = {"text/plain": {"schema": _STRING}, **told["content"]}
    if code in ("429", "503"):
        told["headers"] = {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds."}}
    return told


def _failed(answer: Json) -> Json:
    """An answer that failed has a status of its own, and is told as far as it came."""
    schema = {"anyOf": [answer, _ref("Error")]}
    return {code: _of("application/json", schema, _REFUSED[code]) for code in ("502", "503", "504")}


def _of(kind: str, schema: Json, description: str = "As it says.") -> Json:
    return {"description": description, "content": {kind: {"schema": schema}}}


def _events(description: str, data: Json | None = None) -> Json:
    """A stream, by one event of it. data: what its data holds, where that is JSON."""
    told = {**_STRING, "contentMediaType": "application/json", "contentSchema": data} if data else _STRING
    return _of("text/event-stream", _object(["data"], event=_STRING, data=told, id=_STRING), description)


def _body(schema: Json, *, required: bool = True) -> Json:
    return {"required": required, "content": {"application/json": {"schema": schema}}}


def _in_path(name: str, description: str = "Its name.") -> Json:
    return {"name": name, "in": "path", "required": True, "schema": _STRING, "description": description}


def _in_query(name: str, schema: Json, description: str = "") -> Json:
    return {"name": name, "in": "query", "schema": schema, **({"description": description} if description else {})}


def _after() -> Json:
    schema = {"type": "integer", "minimum": 0, "maximum": 999_999_999}
    return _in_query("after", schema, "Number of the last event that the client has.")


def _ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def _optional(schema: Json, description: str) -> Json:
    return {**schema, "type": [schema["type"], "null"], "description": description}


def _object(required: list[str] | None = None, /, **properties: Json) -> Json:
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def _schemas() -> Json:
    _, events = msgspec.json.schema_components([*_EVENTS, Usage], ref_template="#/components/schemas/{name}")
    code = {"type": ["string", "null"]}
    nullable = {"type": ["string", "null"]}
    sources = {
        "type": "array",
        "items": _object(["title"], title=_STRING, url=nullable, quote=nullable, mark=_STRING),
    }
    told = _object(
        ["code", "message"], code=_STRING, message=_STRING, field=_STRING, limit={"type": ["string", "integer"]}
    )
    return {
        **events,
        "AnswerEvent": {"anyOf": [_ref(kind.__name__) for kind in _EVENTS]},
        "Error": _object(["error"], error=told),
        "PlainError": _object(["error"], error=_STRING),
        "OpenAIError": _object(
            ["error"],
            error=_object(["message", "type"], message=_STRING, type=_STRING, param=nullable, code=nullable),
        ),
        "Answer": _object(
            ["text", "outcome", "exchange", "conversation", "usage", "sources"],
            text=_STRING,
            outcome={"enum": [str(outcome) for outcome in Outcome]},
            code=_STRING,
            message=_STRING,
            by=_STRING,
            exchange=_STRING,
            conversation=_STRING,
            usage={"anyOf": [_ref("Usage"), {"type": "null"}]},
            sources=sources,
            marks={"type": "array", "items": _STRING},
        ),
        "Stopped": _object(["outcome", "shown"], outcome=nullable, shown={"type": "integer"}),
        "Introduction": _object(
            ["assistants", "heartbeat", "message_bytes"],
            assistants={
                "type": "array",
                "items": _object(
                    ["name", "title", "marks"],
                    name=_STRING,
                    title=_STRING,
                    marks={"type": "array", "items": _STRING},
                ),
            },
            heartbeat={"type": "number", "description": "Seconds after which a living server says something."},
            message_bytes={"type": "integer", "description": "How long a question may be, in bytes of UTF-8."},
        ),
        "Transcript": _object(
            ["conversation", "assistant", "exchanges"],
            conversation=_STRING,
            assistant=_STRING,
            exchanges={
                "type": "array",
                "items": _object(
                    ["exchange", "question", "text", "outcome", "asked_at", "sources", "tools"],
                    exchange=_STRING,
                    question=nullable,
                    text=_STRING,
                    outcome={"type": ["string", "null"], "description": "null while it runs"},
                    code=code,
                    message=nullable,
                    asked_at={"type": "number", "description": "UTC, seconds since 1970"},
                    marks={"type": "array", "items": _STRING},
                    key=nullable,
                    replaces=nullable,
                    sources=sources,
                    tools={
                        "type": "array",
                        "items": _object(["name", "status"], name=_STRING, status=_STRING),
                        "description": "What ran, in order; `cancelled`: it was under way at the end.",
                    },
                ),
            },
        ),
        "NaturalAnswer": _object(
            ["naturalLanguageAnswer", "agentId", "confidence", "routingMethod", "grounding", "elapsedMs"],
            naturalLanguageAnswer=_STRING,
            agentId=_STRING,
            confidence={"type": "number"},
            routingMethod=_STRING,
            grounding={},
            elapsedMs={"type": "number"},
            traceId=nullable,
            trace={},
        ),
        **_asking_schemas(),
        "Completion": _object(
            ["id", "object", "created", "model", "choices"],
            id=_STRING,
            object={"const": "chat.completion"},
            created={"type": "integer"},
            model=_STRING,
            choices={"type": "array", "items": {"type": "object"}, "minItems": 1},
            usage={"type": "object"},
            motamot={"type": "object", "description": "what the API has no word for"},
        ),
        "Model": _object(
            ["id", "object", "created", "owned_by"],
            id=_STRING,
            object={"const": "model"},
            created={"type": "integer"},
            owned_by=_STRING,
        ),
        "Models": _object(["object", "data"], object={"const": "list"}, data={"type": "array", "items": _ref("Model")}),
    }


def _asking_schemas() -> Json:
    part = _object(["type", "text"], type={"const": "text"}, text=_STRING)
    text: Json = {"anyOf": [_STRING, {"type": "array", "items": part}]}
    said = {"anyOf": [{"type": "string", "pattern": r"\S"}, {"type": "array", "items": part, "minItems": 1}]}
    name = {"type": "string", "pattern": "^[A-Za-z0-9_.-]{1,128}$"}
    call = _object(
        ["id", "function"],
        id={"type": "string", "minLength": 1},
        type={"const": "function"},
        function=_object(["name", "arguments"], name=name, arguments=_STRING),
    )
    return {
        "Message": {
            "anyOf": [
                _object(["role", "content"], role={"enum": ["system", "developer"]}, content=text),
                _object(["role", "content"], role={"const": "user"}, content=said),
                _object(
                    ["role"],
                    role={"const": "assistant"},
                    content={"anyOf": [text, {"type": "null"}]},
                    tool_calls={"type": ["array", "null"], "items": call},
                ),
                _object(
                    ["role", "tool_call_id", "content"], role={"const": "tool"}, tool_call_id=_STRING, content=text
                ),
            ]
        },
        "UIMessage": _object(
            ["id", "role", "parts"],
            id={"type": "string", "minLength": 1},
            role={"enum": ["user", "assistant"]},
            parts={"type": "array", "items": _ref("UIPart")},
        ),
        "UIPart": {
            "anyOf": [
                _object(["type", "text"], type={"const": "text"}, text=_STRING),
                _object(["type"], type={"type": "string", "not": {"const": "text"}}),
            ]
        },
        "RunMessage": {
            "anyOf": [
                _object(["role", "content"], role={"const": "user"}, content=said),
                _object(
                    ["role"],
                    role={"const": "assistant"},
                    content={"anyOf": [text, {"type": "null"}]},
                    toolCalls={
                        "type": ["array", "null"],
                        "items": _object(
                            ["id", "function"],
                            id=_STRING,
                            function=_object(["name", "arguments"], name=_STRING, arguments=_STRING),
                        ),
                    },
                ),
                _object(
                    ["role", "toolCallId", "content"],
                    role={"const": "tool"},
                    toolCallId={"type": "string", "minLength": 1},
                    content=text,
                    error={"type": ["string", "null"]},
                ),
                _object(["role"], role={"enum": ["activity", "reasoning"]}),
            ]
        },
        "RunTool": _object(
            ["name"],
            name=name,
            description={"type": ["string", "null"]},
            parameters={"type": ["object", "null"], "description": "A JSON Schema."},
        ),
        "Tool": _object(
            ["type", "function"],
            type={"const": "function"},
            function=_object(
                ["name"],
                name=name,
                description={"type": ["string", "null"]},
                parameters={"type": ["object", "null"], "description": "A JSON Schema."},
            ),
        ),
    }
