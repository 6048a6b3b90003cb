"""Recorded behaviour, compared after every move of code.

Each part lists cases: an id and a function that answers it. ``record`` stores the answers under
``data/``; ``compare`` answers again and lists what differs.

    python -m tests.frozen compare             every part
    python -m tests.frozen compare judge       one part, or several
    python -m tests.frozen compare judge -k probation-00   cases whose id contains this
    python -m tests.frozen record judge        after a change that is meant; review the diff of it

The parts:

    judge         decisions on generated trials, probations and malformed documents
    eligibility   ``check`` on the shipped files, the corpus of wrong ones and generated variants
    requests      ``plan`` with its requests, and the requests of the conformance matrix
    steps         trials and months of production through the handlers, with all they store
    commands      exit codes and JSON of every command that needs no account of AWS
    template      the synthesised template for several settings, resource by resource

Codes, figures, arms, severities and keys are compared, sentences for people (``wording.py``) only
as present or absent. Answers are stored whole or, where a part has thousands, as a digest of each
field. ``entries.py`` is the one file that names the code under test; change it when a name moves.

``wording.GAINED`` declares keys that documents have gained on purpose. A decision's id depends on
the sentences in its evidence: rewording one (the reason of a lost run, why a trial runs as shadow)
changes ids in ``steps``, and nothing else.

The tests answer a sample of each part; those marked slow answer all of it. A change of behaviour
records its part again and commits the data.
"""
