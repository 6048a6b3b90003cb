"""The wheels as a team installs them."""
