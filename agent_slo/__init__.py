"""The front door: command line and configuration. Holds no logic of its own."""
