"""SageMaker training: the API, and jobs that are real processes under its contract."""
