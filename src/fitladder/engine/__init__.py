"""Engine processes: what a phase (`parent`) and the process that holds vLLM (`child`) exchange.

request.py is the file that the parent writes, messages.py all that follows. `parent` starts and watches the
process, `child` runs in it, `convert` makes model folders; none of the three imports another.
"""
