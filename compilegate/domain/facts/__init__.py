"""What is known about images, instances, prices and tested models, as values to look up."""
