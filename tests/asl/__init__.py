"""The state machines before judges other than the emulator.

``check_definitions.js`` runs two validators, ``check_expressions.js`` the documented rules that
neither knows, ``evaluate.js`` the reference implementation of JSONata.
"""
