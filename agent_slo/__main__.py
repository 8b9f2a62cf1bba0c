"""`python -m agent_slo`: the same as the command `agent-slo`."""

from agent_slo.cli import main

if __name__ == "__main__":
    main()
