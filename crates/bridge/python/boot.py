# The first thing the interpreter runs (as `-c`). It takes the socket from standard input, puts the
# standard streams where they cannot hurt the protocol, reads the host's own files from the socket
# and hands over to halite_host. Kept tiny: it is on the command line.
import json, os, socket, sys

if sys.version_info < (3, 8):
    # Readable to any Python; `process.rs` knows the code.
    os.write(2, ("it is Python %d.%d.%d" % sys.version_info[:3]).encode("ascii"))
    os._exit(88)
sock = socket.socket(fileno=os.dup(0))
null = os.open(os.devnull, os.O_RDONLY)
os.dup2(null, 0)
os.dup2(2, 1)
os.close(null)
sys.path[:] = [p for p in sys.path if p]


def take(n):
    parts = []
    while n:
        part = sock.recv(n)
        if not part:
            os._exit(0)
        parts.append(part)
        n -= len(part)
    return b"".join(parts)


files = json.loads(take(int.from_bytes(take(4), "little")))
scope = {"__name__": "halite_files"}
exec(compile(files["halite_files"][1], files["halite_files"][0], "exec"), scope)
scope["install"](files)
import halite_host

halite_host.main(sock)
