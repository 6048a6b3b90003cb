"""Images, instances, prices and tested models, as values to look up."""
