"""Checks on an AWS account what the project assumes of AWS, and records what it saw."""
