from contracts.runtime.main import run

run("gateway")
