"""What the pipeline does, one use case per file; Lambdas and the command call the same."""
