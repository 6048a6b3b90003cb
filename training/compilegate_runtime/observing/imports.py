"""Which packages the script's own files import, and when a framework has been imported."""

import builtins
import functools
import sys
from pathlib import Path


class Imports:
    """The top-level names that files below ``folder`` import; ``after`` is called after each."""

    def __init__(self, folder, after):
        self._folder, self._after, self.names = str(folder), after, set()
        self._busy = False

    def install(self):
        """Hook the import statement."""
        original = builtins.__import__

        @functools.wraps(original)
        def importing(name, globals=None, locals=None, fromlist=(), level=0):
            module = original(name, globals, locals, fromlist, level)
            if not level and str((globals or {}).get("__file__", "")).startswith(self._folder):
                self.names.add(name.partition(".")[0])
            if not self._busy:
                self._busy = True
                try:
                    self._after()
                finally:
                    self._busy = False
            return module

        builtins.__import__ = importing

    def packages(self):
        """The distribution and its version of each imported name that is neither standard nor own.

        A name that no distribution claims has neither.
        """
        standard = getattr(sys, "stdlib_module_names", ())
        owners = _owners()
        packages = {}
        for name in sorted(self.names):
            file = getattr(sys.modules.get(name), "__file__", None)
            own = file is not None and Path(self._folder) in Path(file).resolve().parents
            if name in standard or name == "compilegate_runtime" or (own and name not in owners):
                continue
            packages[name] = owners.get(name, [None, None])
        return packages


def _owners():
    """[distribution, version] by top-level name."""
    try:
        from importlib import metadata  # noqa: PLC0415 — slow, and needed once

        owners = metadata.packages_distributions()
        return {name: [of[0], metadata.version(of[0])] for name, of in owners.items()}
    except (ImportError, AttributeError):  # before Python 3.10
        return {}
