"""Shows the facts with their source and age, and reads them again from AWS: `compilegate facts`."""
