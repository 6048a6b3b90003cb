"""Archives as jobs read and leave them."""

import io
import json
import tarfile
from collections.abc import Mapping
from typing import Any


def tarball(files: Mapping[str, Any]) -> bytes:
    """A tar.gz of these files by name: bytes and text as they are, all else as JSON."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, value in files.items():
            text = value if isinstance(value, (bytes, str)) else json.dumps(value)
            body = text.encode() if isinstance(text, str) else text
            entry = tarfile.TarInfo(name)
            entry.size = len(body)
            archive.addfile(entry, io.BytesIO(body))
    return buffer.getvalue()
