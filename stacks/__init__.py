"""The CDK app: one file per thing a reader would draw."""
