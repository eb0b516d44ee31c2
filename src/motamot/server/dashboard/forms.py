"""Forms as browsers send them: fields, and one file."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl

from motamot.errors import InvalidRequest

__all__ = ["fields_of", "parts_of"]

_MOST_FIELDS = 50
_FIELD_CHARACTERS = 2_000
_BOUNDARY = re.compile(r"(?i)multipart/form-data *;.*\bboundary=\"?([A-Za-z0-9'()+_,./:=?-]{1,70})\"?.*")
_DISPOSITION = re.compile(rb'(?im)^content-disposition: *form-data;[^\r\n]*?\bname="([^"\r\n]*)"([^\r\n]*)')


def fields_of(encoded: bytes) -> dict[str, str]:
    """The fields of an urlencoded form or an address; of several of one name the last.

    Raises: InvalidRequest for more, or longer ones, than any form of ours has.
    """
    try:
        pairs = parse_qsl(
            encoded.decode("ascii", "replace"), keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="replace"
        )
    except ValueError:
        raise _too_many() from None
    return dict(_checked(name, value) for name, value in pairs)


def parts_of(kind: str, body: bytes) -> tuple[dict[str, str], bytes]:
    """The fields of a form with a file, and what is in the file: b"" where none was chosen.

    kind:   its Content-Type. Source: RFC 7578; browsers neither nest parts nor encode them.
    Raises: InvalidRequest for what is no such form.
    """
    found = _BOUNDARY.fullmatch(kind)
    if found is None:
        raise InvalidRequest("this form is to be sent as multipart/form-data")
    parts = (b"\r\n" + body).split(b"\r\n--" + found[1].encode())
    if len(parts) < 3 or not parts[-1].startswith(b"--"):
        raise InvalidRequest("the form did not come whole")
    if len(parts) > _MOST_FIELDS:
        raise _too_many()
    fields: dict[str, str] = {}
    file = b""
    for part in parts[1:-1]:
        head, _, content = part.partition(b"\r\n\r\n")
        named = _DISPOSITION.search(head)
        if named is None:
            raise InvalidRequest("a part of the form has no name")
        if b"filename=" in named[2]:
            file = content
        else:
            name, value = _checked(named[1].decode("utf-8", "replace"), content.decode("utf-8", "replace"))
            fields[name] = value
    return fields, file


def _checked(name: str, value: str) -> tuple[str, str]:
    if len(value) > _FIELD_CHARACTERS or len(name) > _FIELD_CHARACTERS:
        raise InvalidRequest(
            f"a field may have {_FIELD_CHARACTERS} characters at most", field=name[:50], limit=_FIELD_CHARACTERS
        )
    return name, value


def _too_many() -> InvalidRequest:
    return InvalidRequest(f"a form has {_MOST_FIELDS} fields at most", limit=_MOST_FIELDS)
