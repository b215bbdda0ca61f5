"""How tests of the pytest plugin load it: as an installed one would be, and alone."""

PLUGIN = "incarnate.simulation.pytest_plugin"

# pytest would rewrite what an installed plugin's distribution holds, and warn that this process has imported it before.
FIXED = ("-p", "no:cacheprovider", "--import-mode=importlib", "-W", "error", "--disable-plugin-autoload", "-p", PLUGIN)
