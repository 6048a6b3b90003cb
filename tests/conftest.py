"""What holds for every test, wherever the tests are started."""

import signal

# A background shell and nohup start programs that ignore Ctrl-C, and what those start does so too:
# tests that interrupt a process of theirs need the signal to arrive.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
