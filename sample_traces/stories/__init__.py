"""The stories of the sample company: each writes one kind of work, or one kind of fault, into a scene."""
