"""Step Functions executions, run by moto's state-language interpreter.

ministack keeps state machines, executions and the API; its own interpreter is too lenient to
trust. moto carries LocalStack's (Apache-2.0), which knows Retry, Catch, Timeout, Heartbeat,
Assign, fail-fast Parallel and Map as AWS does. ``executions`` puts it in place, ``patches``
corrects what moto left out, ``expressions`` evaluates JSONata, ``sagemaker_task`` adds the
createTrainingJob integration.
"""
