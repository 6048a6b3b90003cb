"""Behaviour recorded as data, so that code can move and nothing that a user sees does.

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
    upgrade       clouds as release 0.1 left them (``tests/fixtures/records-0.1``), continued
    template      the synthesised template for several settings, resource by resource

Sentences for people are not compared (``wording.py`` lists the fields): codes, figures, arms,
severities, keys, and whether a sentence is there at all are. Answers are stored whole, or, where a
part has thousands, as a digest of each field. ``entries.py`` is the one file that names the code
under test; change it when a name moves, and nothing else here.

``wording.GAINED`` declares keys that documents have gained on purpose; they are left out as well. A
sentence inside evidence is part of what a decision's id is made from: rewording one (the reason of
a lost run, why a trial runs as shadow) changes ids in ``steps``, and nothing else.

The tests answer a sample of each part; those marked slow answer all of it. Whoever changes
behaviour on purpose records the part again and commits the data with the change.
"""
