"""A small company of agents, as traces, with the truth about them."""
