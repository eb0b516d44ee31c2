"""Settings: one TOML file with the environment over it, and errors that say where."""

from __future__ import annotations

import logging
import os
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import motamot.settings
from motamot import Limits
from motamot.errors import SettingsError
from motamot.model.http import HttpModel
from motamot.model.recorded import RecordedModel
from motamot.model.sources import resolve
from motamot.settings import assistant_from, chosen, database, limits, load, wanted
from motamot.settings.places import lines_of
from motamot.settings.schema import AssistantSettings, Settings

FULL = """\
# A comment first.
[store]
database = "books.sqlite3"

[assistants.guide]
upstream = "https://models.example/v1"
model = "large"
api_key_env = "GUIDE_KEY"
headers = { X-Team = "buses" }
token_field = "max_completion_tokens"
ask_usage = false
ca_file = "ca.pem"
proxy = "http://proxy.example:3128"
system = "Answer in one sentence."
extra = { temperature = 0.2, stop = ["\\n\\n"] }
recorded = ["One.", "Two."]
fallback = "recorded"

[assistants.guide.limits]
max_tokens = 300
answer_timeout = 30

[assistants.guide.visible]
reasoning = true

[assistants.guide.prices]
input = 0.5
output = 1

[assistants.guide.dialect]
think_tags = true
"""


def write(folder: Path, text: str | bytes) -> Path:
    file = folder / "motamot.toml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def complaint(file: Path | None, environ: dict[str, str] | None = None) -> str:
    with pytest.raises(SettingsError) as caught:
        load(file, environ=environ or {})
    return caught.value.message


# Reading


def test_a_whole_file_is_read_and_makes_what_it_says(tmp_path: Path) -> None:
    settings = load(write(tmp_path, FULL), environ={})
    name, guide = chosen(settings)
    assert name == "guide"
    assert database(settings, {}) == str(tmp_path / "books.sqlite3")
    assert limits(guide) == Limits(max_tokens=300, answer_timeout=30)
    found = wanted(guide, {"GUIDE_KEY": " secret\n"})
    assert (found.upstream, found.model, found.api_key) == ("https://models.example/v1", "large", "secret")
    assert found.http["headers"] == {"X-Team": "buses"}
    assert found.http["ca_file"] == str(tmp_path / "ca.pem")
    assert found.http["dialect"].think_tags
    assert found.recorded == ("One.", "Two.")
    assert found.fallback == "recorded"


def test_an_assistant_has_all_that_its_settings_say(tmp_path: Path) -> None:
    text = FULL.replace('ca_file = "ca.pem"\n', "")
    assistant = assistant_from(load(write(tmp_path, text), environ={}), environ={"GUIDE_KEY": "secret"})
    assert assistant.name == "guide"
    assert assistant.system == "Answer in one sentence."
    assert assistant.limits == Limits(max_tokens=300, answer_timeout=30)
    assert assistant.visible.reasoning
    assert assistant.extra == {"temperature": 0.2, "stop": ["\n\n"]}
    model = assistant._model()
    assert isinstance(model, HttpModel)
    assert (model.url, model.name) == ("https://models.example/v1/chat/completions", "large")
    assert model.dialect is not None
    assert model.dialect.think_tags


def test_without_a_file_everything_has_its_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = load(environ={})
    assert settings == Settings()
    assert chosen(settings)[0] == "default"
    assert limits(chosen(settings)[1]) == Limits()


def test_the_file_in_the_current_folder_is_read_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, '[assistants.here]\nmodel = "m"\n')
    monkeypatch.chdir(tmp_path)
    assert list(load(environ={}).assistants) == ["here"]


def test_a_variable_names_another_file_and_the_caller_yet_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, '[assistants.here]\nmodel = "m"\n')
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.toml").write_text('[assistants.there]\nmodel = "m"\n')
    (tmp_path / "third.toml").write_text('[assistants.third]\nmodel = "m"\n')
    environ = {"MOTAMOT_SETTINGS": "there.toml"}
    assert list(load(environ=environ).assistants) == ["there"]
    assert list(load("third.toml", environ=environ).assistants) == ["third"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_somebody_elses_file_is_not_read_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path, '[assistants.here]\nmodel = "m"\n')
    os.chown(file, 12345, -1)
    monkeypatch.chdir(tmp_path)
    assert "belongs to another user" in complaint(None)
    assert list(load(file, environ={}).assistants) == ["here"]  # named, it is


def test_a_byte_order_mark_and_crlf_are_no_part_of_the_settings(tmp_path: Path) -> None:
    text = "\ufeff" + '[assistants.a]\nmodel = "m"\n'.replace("\n", "\r\n")
    assert load(write(tmp_path, text), environ={}).assistants["a"].model == "m"


def test_paths_in_a_file_are_beside_it(tmp_path: Path) -> None:
    text = '[store]\ndatabase = "~/books.db"\n[assistants.a]\ngguf = "models/m.gguf"\n'
    settings = load(write(tmp_path, text), environ={})
    assert settings.store.database == str(Path("~/books.db").expanduser())
    assert settings.assistants["a"].gguf == str(tmp_path / "models/m.gguf")


@pytest.mark.parametrize("where", ["sqlite:///x.db", ":memory:"])
def test_a_database_that_is_no_path_stays_as_it_is(tmp_path: Path, where: str) -> None:
    assert load(write(tmp_path, f'store.database = "{where}"'), environ={}).store.database == where


# Choosing


def test_of_several_assistants_the_one_called_default_answers(tmp_path: Path) -> None:
    text = '[assistants.a]\nmodel = "1"\n[assistants.default]\nmodel = "2"\n'
    settings = load(write(tmp_path, text), environ={})
    assert chosen(settings)[0] == "default"
    assert chosen(settings, "a")[0] == "a"


def test_an_assistant_that_is_not_there_is_asked_for_in_vain(tmp_path: Path) -> None:
    settings = load(write(tmp_path, '[assistants.guide]\nmodel = "1"\n[assistants.shop]\nmodel = "2"\n'), environ={})
    with pytest.raises(SettingsError, match="did you mean guide"):
        chosen(settings, "giude")
    with pytest.raises(SettingsError, match="there are: guide, shop"):
        chosen(settings)
    with pytest.raises(SettingsError, match="the settings have none"):
        chosen(Settings(), "guide")


def test_a_key_that_is_not_in_its_variable_is_said(tmp_path: Path) -> None:
    guide = AssistantSettings(upstream="http://m", model="m", api_key_env="GUIDE_KEY")
    with pytest.raises(SettingsError, match="GUIDE_KEY, which is not set"):
        wanted(guide, {})


def test_recorded_samples_answer_where_nothing_else_is_named(tmp_path: Path) -> None:
    settings = load(write(tmp_path, '[assistants.a]\nrecorded = ["One."]\n'), environ={})
    choice = resolve(wanted(settings.assistants["a"], {}), ask=None, say=print, environ={"OPENAI_API_KEY": "k"})
    assert isinstance(choice.make(), RecordedModel)
    assert choice.labels == ("recorded",)


# The environment


def test_the_environment_goes_before_the_file(tmp_path: Path) -> None:
    environ = {
        "MOTAMOT_ASSISTANTS__GUIDE__MODEL": "42",
        "MOTAMOT_ASSISTANTS__GUIDE__LIMITS__MAX_TOKENS": "7",
        "MOTAMOT_ASSISTANTS__GUIDE__EXTRA": '{"temperature": 1}',
        "MOTAMOT_ASSISTANTS__GUIDE__ASK_USAGE": "true",
        "MOTAMOT_STORE__DATABASE": "sqlite:///other.db",
        "MOTAMOT_ASSISTANTS__GUIDE__SYSTEM": "",  # how compose files say "not set"
        "MOTAMOT_DEBUG": "1",
        "OTHER__THING": "1",
    }
    settings = load(write(tmp_path, FULL), environ=environ)
    guide = settings.assistants["guide"]
    assert guide.model == "42"
    assert limits(guide) == Limits(max_tokens=7, answer_timeout=30)
    assert guide.extra == {"temperature": 1}
    assert guide.ask_usage
    assert guide.system == "Answer in one sentence."
    assert settings.store.database == "sqlite:///other.db"


def test_the_environment_alone_makes_an_assistant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = load(environ={"MOTAMOT_ASSISTANTS__SHOP__UPSTREAM": "http://m/v1", "MOTAMOT_DATABASE": "/x/y.db"})
    assert settings.assistants["shop"].upstream == "http://m/v1"
    assert database(settings, {}) == "/x/y.db"


def test_a_name_that_no_variable_can_hold_is_met_with_underscores(tmp_path: Path) -> None:
    file = write(tmp_path, '[assistants."Mon Guide"]\nmodel = "a"\n')
    settings = load(file, environ={"MOTAMOT_ASSISTANTS__MON_GUIDE__MODEL": "b"})
    assert {name: its.model for name, its in settings.assistants.items()} == {"Mon Guide": "b"}


def test_a_variable_that_is_wrong_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    environ = {
        "MOTAMOT_STORE__DATABAS": "x",
        "MOTAMOT_STOR__DATABASE": "x",
        "MOTAMOT_ASSISTANTS__A__LIMITS__MAX_TOKENS": "many",
        "MOTAMOT_ASSISTANTS__A__LOCAL": "yes",
        "MOTAMOT_ASSISTANTS__A__EXTRA": "temperature=1",
    }
    assert set(complaint(None, environ).split("\n")) == {
        "the environment variable MOTAMOT_STORE__DATABAS is not a setting; did you mean database?",
        "the environment variable MOTAMOT_STOR__DATABASE is not a setting; did you mean store?",
        "the environment variable MOTAMOT_ASSISTANTS__A__LIMITS__MAX_TOKENS must be a whole number, not text",
        "the environment variable MOTAMOT_ASSISTANTS__A__LOCAL must be true or false, not text; `model` names it",
        "the environment variable MOTAMOT_ASSISTANTS__A__EXTRA must be a table, not text",
    }


# What is wrong, and where

WRONG = [
    ('[stor]\ndatabase = "x"', "line 1: stor is not a setting; did you mean store?"),
    ("[assistants.a]\n\nmodle = 1", "line 3: assistants.a.modle is not a setting; did you mean model?"),
    ("[assistants.a]\nmodel = 1", "line 2: assistants.a.model must be text, not a whole number"),
    ("[assistants.a]\nmodel = '  '", "line 2: assistants.a.model: must not be empty"),
    ("[assistants.a]\nlocal = 'yes'", "line 2: assistants.a.local must be true or false, not text; `model` names"),
    ("[assistants.a]\nsystem = ['x']", "line 2: assistants.a.system must be text, not a list"),
    ("[assistants.a]\nsystem = 2026-11-29", "line 2: assistants.a.system must be text, not a date or time"),
    ("[assistants.a]\nlimits = 5", "line 2: assistants.a.limits must be a table, not a whole number"),
    ("assistants = 5", "line 1: assistants must be a table, not a whole number"),
    ("[assistants]\na = 'x'", "line 2: assistants.a must be a table, not text"),
    ("[assistants.a.limits]\n# why\nmax_tokens = 1.5", "line 3: assistants.a.limits.max_tokens must be a whole number"),
    ("[assistants.a]\nlimits.max_tokens = true", "line 2: assistants.a.limits.max_tokens must be a whole number"),
    ("[assistants.a]\nlimits = { max_tokens = 0 }", "line 2: assistants.a.limits.max_tokens must be more than 0"),
    ("[assistants.a]\nlimits.tool_seconds = inf", "line 2: assistants.a.limits.tool_seconds must be a finite number"),
    (
        "[assistants.a]\nlimits.tool_second = 3",
        "line 2: assistants.a.limits.tool_second is not a setting; did you mean tool_sec",
    ),
    ("[assistants.a]\nprices = { input = 1 }", "line 2: assistants.a.prices.output is missing"),
    ("[assistants.a]\nprices = { input = -1, output = 1 }", "line 2: assistants.a.prices.input must be 0 or more"),
    ("[assistants.a]\nvisible.reasonings = true", "line 2: assistants.a.visible.reasonings is not a setting; did you"),
    (
        "[assistants.a]\nrecorded = [\n'one',\n2,\n]",
        "line 4: assistants.a.recorded[1] must be text, not a whole number",
    ),
    ("[assistants.a]\nfallback = 'ollama'", 'line 2: assistants.a.fallback must be "recorded"'),
    ("[assistants.a]\nfallback = 'recorded'", "line 2: assistants.a.fallback: it needs sample answers"),
    ("[assistants.a]\nupstream = 'ftp://x'", "line 2: assistants.a.upstream: the model's address 'ftp://x'"),
    ("[assistants.a]\nextra.messages = []", "line 2: assistants.a.extra: the model's extra field 'messages'"),
    (
        "[assistants.a]\nheaders = { 'a b' = 'x' }",
        "line 2: assistants.a.headers: 'a b' is not the name of an HTTP header",
    ),
    ("[assistants.a]\nheaders = { X = 1 }", "line 2: assistants.a.headers.X must be text, not a whole number"),
    ("[assistants.a]\ntoken_field = 'tokens'", 'line 2: assistants.a.token_field must be "max_tokens" or'),
    (
        "[assistants.a]\nlocal = true\nupstream = 'http://x'",
        "line 2: assistants.a.local: upstream names another source",
    ),
    (
        "[assistants.a]\ngguf = 'x'\napi_key = 'secret'",
        "line 3: assistants.a.api_key: it is for a model behind an address",
    ),
    (
        "[assistants.a]\napi_key = 'secret'\napi_key_env = 'K'",
        "line 2: assistants.a.api_key: api_key_env names another",
    ),
    (
        "[assistants.a]\nupstream = 'http://x'\nrecorded = ['x']",
        'line 3: assistants.a.recorded: upstream answers already: say fallback = "recorded"',
    ),
    ('[assistants."a\\u001b[2J"]\nmodel = "m"', 'line 1: assistants."a\\u001b[2J": a name has 1 to 100 printable'),
    ('[assistants."mon guide"]\nmodel = 1', 'line 2: assistants."mon guide".model must be text'),
    ('[\'assistants\' . "a"]\n"model" = 1', "line 2: assistants.a.model must be text"),
    ("assistants.a.limits.max_turns = ''", "line 1: assistants.a.limits.max_turns must be a whole number, not text"),
    ("[[assistants]]\nmodel = 'x'", "line 1: assistants must be a table, not a list"),
    ("[assistants.a]\nmodel = 'x\n", "line 2: not TOML: "),
    ("[assistants.a\nmodel = 'x'", "line 1: not TOML: "),
    ("[assistants.a]\nmodel = 'x'\nmodel = 'y'\n", "line 3: not TOML: Cannot overwrite a value"),
    ("[assistants.a]\nsystem = '''\nno end", "line 2: not TOML: "),
    ("[assistants.a]\nextra = [\n1,\n", "line 4: not TOML: "),
    ("[assistants.a]\nmodel = 'x'\nmodel = 'y'", "line 3: not TOML: Cannot overwrite a value"),
    (b"[assistants.a]\n# caf\xe9\n", "line 2: not UTF-8"),
    (b"\x00\x01\x02", "line 1: not TOML: "),
    (b"SQLite format 3\x00" + b"x" * 1_000_000, "more than 1000000 bytes; is it the right file?"),
    ("a = " + "[" * 50_000, "nested too deep"),
    ('assistants.a.origins = ["https://shop.example/"]', "origins[0]: an origin is scheme, host and port and nothing"),
    ('assistants.a.origins = ["https://shop.example:443"]', "origins[0]: browsers leave out a scheme's own port"),
    ('assistants.a.origins = ["https://*.shop.example"]', "origins[0]: each origin is named in full, without *"),
    ('assistants.a.origins = ["https://bücher.example"]', "origins[0]: each origin is named in full, without *"),
    ('assistants.a.origins = ["https://me@shop.example"]', "origins[0]: each origin is named in full, without *"),
]


@pytest.mark.parametrize(("text", "said"), WRONG, ids=range(len(WRONG)))
def test_what_is_wrong_is_said_with_file_line_and_key(tmp_path: Path, text: str | bytes, said: str) -> None:
    file = write(tmp_path, text)
    told = complaint(file)
    assert str(file) in told
    assert said in told
    assert "secret" not in told
    assert "\x1b" not in told


def test_all_that_is_wrong_is_said_in_the_order_of_the_file(tmp_path: Path) -> None:
    told = complaint(write(tmp_path, "[assistants.b]\nmodel = 1\nlocal = 2\n[assistants.a]\nx = 1\nsystem = 1\n"))
    assert [line.split(": ")[1].split()[0] for line in told.split("\n")] == [
        "assistants.b.model",
        "assistants.b.local",
        "assistants.a.x",
        "assistants.a.system",
    ]


def test_more_than_ten_faults_are_counted(tmp_path: Path) -> None:
    told = complaint(write(tmp_path, "[assistants.b]\n" + "".join(f"x{n} = 1\n" for n in range(13))))
    assert told.split("\n")[10:] == ["and 3 more"]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda file: None, "there is no settings file"),
        (lambda file: file.mkdir(), "cannot be read: Is a directory"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, make: Any, said: str) -> None:
    file = tmp_path / "motamot.toml"
    make(file)
    told = complaint(file)
    assert said in told
    assert str(file) in told


def test_a_key_in_the_file_is_warned_of_and_never_shown(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = write(tmp_path, "[assistants.a]\nupstream = 'http://x'\n\napi_key = 'sk-secret'\n")
    with caplog.at_level(logging.WARNING):
        settings = load(file, environ={})
    assert [record.getMessage() for record in caplog.records] == [
        f"{file}, line 4: assistants.a.api_key holds a key itself; api_key_env, the name of a variable, keeps it out"
    ]
    assert "sk-secret" not in repr(settings)
    assert wanted(settings.assistants["a"], {}).api_key == "sk-secret"


def test_every_setting_is_explained() -> None:
    page = (Path(__file__).parent.parent / "docs" / "settings.md").read_text("utf-8")
    for section in (Settings, motamot.settings.StoreSettings, motamot.settings.ServerSettings, AssistantSettings):
        for key in section.model_fields:
            assert any(found in page for found in (f"`{key}`", f"`[{key}", f".{key}]`")), key


# Lines


KEYS = st.one_of(
    st.from_regex(r"[A-Za-z0-9_-]{1,6}", fullmatch=True),
    st.text("aé .=#'\"[]{}\\\t☃😀", max_size=5),
)
SCALARS = st.one_of(
    st.integers(-99, 99).map(str),
    st.sampled_from(["true", "1e3", "-inf", "2026-11-29", "2026-11-29 20:14:05", "07:32:00", "0xff", "'''x\n'''"]),
    st.sampled_from(["'''a\n# ''b'''", '"""\\\n  "" x\n\\""""', '"""a"""""', '""', "''", "'#]}'", r'"\\\"] , # ="']),
)


def quoted(key: str) -> str:
    if key and key.isascii() and key.replace("_", "a").replace("-", "a").isalnum():
        return key
    return '"' + key.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t") + '"'


@st.composite
def values(draw: st.DrawFn, depth: int = 2) -> str:
    kind = draw(st.sampled_from(["scalar", "list", "table"])) if depth else "scalar"
    if kind == "list":
        between = draw(st.sampled_from([", ", " ,\n", "\n, # ], }\n"]))
        return "[" + between.join(draw(st.lists(values(depth - 1), max_size=3))) + draw(st.sampled_from(["]", "\n]"]))
    if kind == "table":
        keys = draw(st.lists(KEYS, max_size=3, unique=True))
        inner = [f"{quoted(key)} = {draw(values(0))}" for key in keys]
        return "{ " + ", ".join(pair for pair in inner if "\n" not in pair.split("=")[0]) + " }"
    return draw(SCALARS)


@st.composite
def documents(draw: st.DrawFn) -> str:
    lines = []
    for _ in range(draw(st.integers(0, 3))):
        path = draw(st.lists(KEYS, min_size=1, max_size=3))
        header = draw(st.sampled_from(["", "[%s]", "[[%s]]"]))
        if header:
            lines.append(header % draw(st.sampled_from([".", " . "])).join(map(quoted, path)) + " # [x]")
        for _ in range(draw(st.integers(0, 3))):
            key = ".".join(map(quoted, draw(st.lists(KEYS, min_size=1, max_size=2))))
            lines.append(f"{draw(st.sampled_from(['', '  ']))}{key} = {draw(values())}")
            lines.append(draw(st.sampled_from(["", "# a.b = 1", "\t"])))
    return draw(st.sampled_from(["\n", "\r\n"])).join("\n".join(lines).split("\n"))


def paths_of(value: Any, path: tuple[str | int, ...] = ()) -> set[tuple[str | int, ...]]:
    found = {path} if path else set()
    if isinstance(value, dict):
        for key, inner in value.items():
            found |= paths_of(inner, (*path, key))
    if isinstance(value, list):
        for number, inner in enumerate(value):
            found |= paths_of(inner, (*path, number))
    return found


@given(documents())
def test_every_key_of_any_document_is_found_on_a_line_that_holds_it(text: str) -> None:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return  # the generator made a key twice, or a line end in an inline table
    found = lines_of(text)
    assert set(found) == paths_of(data)
    lines = text.replace("\r\n", "\n").split("\n")
    for path, line in found.items():
        key = next(part for part in reversed(path) if isinstance(part, str))
        if isinstance(path[-1], str):
            assert quoted(key) in lines[line - 1]


# Privacy


def test_texts_can_be_kept_for_some_days_and_go_through_a_function_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "hooks.py").write_text("def redact(text):\n    return text.replace('secret', '[gone]')\n")
    file = write(
        tmp_path,
        "[store]\nretention_days = 30\nredact = 'hooks.py:redact'\n[assistants.a]\nrecorded = ['Hello.']\n",
    )
    chat = assistant_from(load(file, environ={}))
    assert chat.retention_days == 30
    assert chat.redact is not None
    assert chat.redact("my secret") == "my [gone]"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("redact = 'nothing'", 'name it as "module:function"'),
        ("redact = 'm:a b'", 'name it as "module:function"'),
        ("redact = ':f'", 'name it as "module:function"'),
        ("retention_days = 0", "retention_days"),
        ("retention_days = -1", "retention_days"),
        ("retention_days = inf", "retention_days"),
    ],
)
def test_a_privacy_setting_that_means_nothing_is_told_with_its_line(tmp_path: Path, line: str, words: str) -> None:
    with pytest.raises(SettingsError) as told:
        load(write(tmp_path, f"[store]\n{line}\n"), environ={})
    assert "line 2" in str(told.value)
    assert words in str(told.value)


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ("missing.py:f", "cannot be loaded: FileNotFoundError"),
        ("no_such_module_of_ours:f", "cannot be loaded: ModuleNotFoundError"),
        ("hooks.py:missing", "has no function 'missing'"),
        ("hooks.py:number", "has no function 'number'"),
        ("hooks.py:later", "redact is a plain function"),
        ("broken.py:f", "cannot be loaded: ZeroDivisionError"),
    ],
)
def test_a_function_that_is_not_there_is_told(tmp_path: Path, named: str, words: str) -> None:
    (tmp_path / "hooks.py").write_text("number = 7\nasync def later(text):\n    return text\n")
    (tmp_path / "broken.py").write_text("1 / 0\n")
    file = write(tmp_path, f"[store]\nredact = '{named}'\n[assistants.a]\nrecorded = ['Hello.']\n")
    with pytest.raises(SettingsError, match=re.escape(words)):
        assistant_from(load(file, environ={}))
