"""Complete CreateTrainingJob requests, as SageMaker gets them."""
