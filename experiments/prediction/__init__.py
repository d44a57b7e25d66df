"""What predictions share: the systems whose reads are predicted, and the models that predict them."""
