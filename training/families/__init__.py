"""What the training scripts share: reading channels, tokens, images, the optimiser's part."""
