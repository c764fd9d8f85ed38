"""The command line: ``main`` lists the commands, the other modules are thin layers over them."""
