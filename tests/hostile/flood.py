# A program inside a sandbox that answers every request with a flood; its path says of what. It ends when the visitor is gone.
import socket
import sys
import threading
import time

OK = b'HTTP/1.1 200 OK\r\n'
CHUNKED = OK + b'Transfer-Encoding: chunked\r\n\r\n'
# What comes first, and what comes then again and again.
FLOODS = {
    b'/continue': (b'', b'HTTP/1.1 100 Continue\r\n\r\n' * 2500),
    b'/hints': (b'', b'HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n' * 1000),
    b'/headers': (OK, b'X-Endless: header\r\n' * 3000),
    b'/extensions': (CHUNKED + b'1', b';endless=extension' * 3000),
    b'/trailers': (CHUNKED + b'1\r\nx\r\n0\r\n', b'X-Endless: trailer\r\n' * 3000),
    b'/chunks': (CHUNKED, b'1\r\nx\r\n' * 10000),
    b'/body': (OK + b'\r\n', bytes(65536)),
    b'/tunnel': (b'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: flood\r\n\r\n', bytes(65536)),
    b'/deaf': (b'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: flood\r\n\r\n', b''),
}


def serve(connection):
    try:
        head = b''
        while b'\r\n\r\n' not in head:
            piece = connection.recv(4096)
            if not piece:
                return
            head += piece
        first, again = FLOODS.get(head.split(b' ')[1], (OK + b'Content-Length: 2\r\n\r\nok', None))
        connection.sendall(first)
        while again:
            connection.sendall(again)
        if again is not None:
            time.sleep(3600)
    except OSError:
        pass
    finally:
        connection.close()


listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(('127.0.0.1', int(sys.argv[1])))
listener.listen(1024)
threading.stack_size(256 * 1024)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
