"""Names that the embedded cloud shares with its emulator, which runs in another environment."""

from dataclasses import dataclass
from pathlib import Path

HOST = "127.0.0.1"
# The emulator reads an access key of twelve digits as that account's root.
ACCOUNT = "000000000000"
# The emulator's own paths, beside those of AWS.
ADMIN_PATH = "/_compilegate/"
# The service that calls of them are signed for.
ADMIN_SERVICE = "compilegate"
# Variables of other credentials than this cloud's; AWS's clients would look for their profile.
OTHER_CREDENTIALS = ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_SESSION_TOKEN")
# The stage of the app that is deployed here, and its stack.
STAGE = "local"
STACK = "compilegate-local"


@dataclass(frozen=True)
class Home:
    """Where an embedded cloud writes; ``home`` holds all of it."""

    home: Path

    @property
    def state_file(self) -> Path:
        """Written when the emulator serves, with its key; removed when it ends."""
        return self.home / "state.json"

    @property
    def logs(self) -> Path:
        """Every part's log of the last run; kept after it."""
        return self.home / "logs"

    @property
    def work(self) -> Path:
        """Working files of a run; gone after it."""
        return self.home / "work"

    @property
    def journal(self) -> Path:
        """What a run holds, for the next one if it is killed; gone after one that ends in order."""
        return self.home / "journal"
