"""Where the error of compiled training comes from, and what helps, for ``compilegate try``.

The equivalence check says that compiled code is wrong; this looks for the stage of the compiler,
the graph and the operators, tries remedies, and writes a file that shows the error by itself.
"""

import json
import os
import sys

from compilegate_runtime.progress import write_line

VARIABLE = "COMPILEGATE_DIAGNOSIS"


def asked_for(subject, figures, folder):
    """``diagnosis`` for a run's summary, where ``compilegate try`` asks for one.

    The variable is JSON: ``limit_seconds`` as ``diagnose`` takes it, and ``bounds`` by the kind of
    device that they were measured on.
    """
    asked = os.environ.get(VARIABLE)
    if not asked:
        return {}
    from compilegate_runtime.diagnosis.search import diagnose  # noqa: PLC0415 - only torch's jobs

    def say(**what):
        words = ["{}={}".format(*one) for one in what.items() if one[1] is not None]
        write_line(" ".join(["compilegate equivalence", *words]), stream)

    stream = sys.stdout  # as it is now; PyTorch's tools are kept quiet
    settings = json.loads(asked)
    kind = (figures["class"] or {"device": ""})["device"].partition(" ")[0]
    settings["bounds"] = settings["bounds"].get(kind)
    return {"diagnosis": diagnose(subject, figures, folder, say=say, **settings)}
