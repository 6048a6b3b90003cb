"""What a trial will run, in which jobs, and what that probably costs."""
