"""From findings to incidents to evaluation cases."""
