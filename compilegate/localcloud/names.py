"""Names that the embedded cloud shares with its emulator, which runs in another environment."""

HOST = "127.0.0.1"
# The emulator reads an access key of twelve digits as that account's root.
ACCOUNT = "000000000000"
SECRET = "local"  # noqa: S105  # the emulator checks no signatures of the root account
# The emulator's own paths, beside those of AWS.
ADMIN_PATH = "/_compilegate/"
# The stage of the app that is deployed here, and its stack.
STAGE = "local"
STACK = "compilegate-local"
