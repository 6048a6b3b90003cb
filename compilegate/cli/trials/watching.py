"""Follows what runs in a cloud to its end, past a connection that is lost for a while."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Console

from compilegate.cli.trials.screen import screen
from compilegate.cli.trials.view import TrialView
from compilegate.domain.errors import EnvironmentNotReadyError

LOST_AFTER = 10
View_co = TypeVar("View_co", bound=TrialView, covariant=True)


class Watcher(Protocol[View_co]):
    """Looks at one execution again and again."""

    def look(self) -> View_co:
        """As it is now."""
        ...


def watch(
    watchers: Sequence[Watcher[View_co]],
    poll_seconds: float,
    console: Console,
    *,
    what: str = "trial",
    on_end: Callable[[View_co], None] | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> list[View_co]:
    """Show progress until every execution has ended; returns the last view of each.

    ``on_end`` gets the last view of each as soon as it has ended.
    Raises EnvironmentNotReadyError when none of ten looks in a row succeeded.
    """
    lost, ended = 0, set[int]()
    with screen(console) as shown:
        while True:
            try:
                views = [watcher.look() for watcher in watchers]
                lost = 0
            except (BotoCoreError, ClientError, OSError) as error:
                lost += 1
                if lost >= LOST_AFTER:
                    raise EnvironmentNotReadyError(
                        f"the {what} can no longer be watched ({error}); it goes on by itself. "
                        "Fix: look again with `compilegate status`"
                    ) from error
            else:
                shown.show(views)
                for number, view in enumerate(views):
                    if on_end and not view.state.running and number not in ended:
                        ended.add(number)
                        on_end(view)
                if not any(view.state.running for view in views):
                    return views
            sleep(poll_seconds)
