"""Documents that people really have: what becomes of each file of a folder, as a table. `make corpus DIR=folder`."""
