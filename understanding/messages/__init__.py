"""What a model is asked: the words of each form as data, and the building of messages from them."""
