"""How a message looks to each kind of receiver, and how it gets there."""
