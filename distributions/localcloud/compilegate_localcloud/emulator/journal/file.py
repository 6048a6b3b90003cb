"""The journal's file: records by kind and name, each write all or nothing.

SQLite's write-ahead log: what was cut off in the middle of a write counts as not written.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import sqlite3
import threading
from collections.abc import Mapping
from pathlib import Path

log = logging.getLogger("compilegate.journal")
Key = tuple[str, str]  # kind, name
FILE = "journal.sqlite"
_VERSION = "version"
_PRAGMAS = (
    "locking_mode = EXCLUSIVE",  # one process: no file of shared memory beside it
    "journal_mode = WAL",
    "synchronous = FULL",  # an answered write has reached the disk
)
_TABLE = (
    "CREATE TABLE IF NOT EXISTS record (kind TEXT, name TEXT, content BLOB, "
    "PRIMARY KEY (kind, name))"
)


class UnusableError(Exception):
    """What a killed emulator left cannot be used; the text says where it lies and what to do."""


class Journal:
    """The records of one folder.

    Where it cannot be written it is deleted: what a later emulator would find were an old state.
    Nothing is written after that. Raises UnusableError.
    """

    def __init__(self, folder: Path, version: str) -> None:
        self._folder = folder
        # When a record was last written, None where there was no file.
        self.written_at: float | None = None
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        times = [path.stat().st_mtime for path in folder.glob(f"{FILE}*")]
        self.written_at = max(times, default=None)
        try:
            self._open(version)
        except (OSError, sqlite3.OperationalError) as error:
            if self.written_at is not None:
                raise UnusableError(
                    f"What a killed local cloud left in {folder} cannot be read now ({error}): "
                    "free space on its disk and make it writable, or delete the folder."
                ) from error
            self._give_up(error)
        except (sqlite3.Error, ValueError) as error:
            self.set_aside(error)

    def read(self, kind: str) -> dict[str, bytes]:
        """All records of a kind by name."""
        with self._lock:
            if self._connection is None:
                return {}
            rows = self._connection.execute(
                "SELECT name, content FROM record WHERE kind = ?", (kind,)
            )
            return {name: bytes(content) for name, content in rows}

    def write(self, changes: Mapping[Key, bytes | None]) -> None:
        """Write records, or delete those that are None, all of them or none."""
        with self._lock:
            if self._connection is not None:
                try:
                    self._write(self._connection, changes)
                except (OSError, sqlite3.Error) as error:
                    self._give_up(error)

    def give_up(self, error: Exception) -> None:
        """Delete it: what should be written cannot be."""
        with self._lock:
            if self._connection is not None:
                self._give_up(error)

    def delete(self) -> None:
        """The emulator ends in order, and what it holds with it."""
        with self._lock:
            self._delete()

    def set_aside(self, error: Exception) -> None:
        """Keep what cannot be used apart, so that the next emulator starts; UnusableError."""
        self._close()
        place = self._folder.with_name(f"{self._folder.name}-unusable")
        shutil.rmtree(place, ignore_errors=True)
        self._folder.rename(place)
        raise UnusableError(
            f"What a killed local cloud left cannot be used: {error}. It lies in {place}. "
            "Run the command again, which starts an empty one."
        ) from error

    def _open(self, version: str) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        connection = sqlite3.connect(
            self._folder / FILE, isolation_level=None, check_same_thread=False
        )
        self._connection = connection
        for pragma in _PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")
        connection.execute(_TABLE)
        if connection.execute("PRAGMA quick_check").fetchone() != ("ok",):
            raise ValueError("its file is damaged")
        written = self.read(_VERSION).get("")
        if written is None:
            self._write(connection, {(_VERSION, ""): version.encode()})
        elif written != version.encode():
            raise ValueError("another release wrote it")

    @staticmethod
    def _write(connection: sqlite3.Connection, changes: Mapping[Key, bytes | None]) -> None:
        connection.execute("BEGIN IMMEDIATE")
        try:
            for (kind, name), content in changes.items():
                if content is None:
                    connection.execute(
                        "DELETE FROM record WHERE kind = ? AND name = ?", (kind, name)
                    )
                else:
                    connection.execute(
                        "INSERT OR REPLACE INTO record VALUES (?, ?, ?)", (kind, name, content)
                    )
            connection.execute("COMMIT")
        except sqlite3.Error:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise

    def _give_up(self, error: Exception) -> None:
        log.error(
            "The journal cannot be written (%s) and is deleted: the local cloud goes on, but if it "
            "is killed, nothing of it is left.", error,
        )  # fmt: skip
        self._delete()

    def _close(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def _delete(self) -> None:
        self._close()
        shutil.rmtree(self._folder, ignore_errors=True)
