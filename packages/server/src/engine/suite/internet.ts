// A small internet for tests: a network namespace behind a veth, with a host in a documentation range, one in a private
// range and one where clouds keep their metadata. Nothing leaves the machine.
//
//   this machine 192.0.2.<a> ──veth── 192.0.2.<b>  HTTP on 80 and 8080, DNS on 53 (udp, tcp)
//                10.99.<slot>.1         10.99.<slot>.2
//                                       169.254.<100 + slot>.2
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { needs } from '../../../../../tests/support/programs.ts'

needs('ip')

const run = promisify(execFile)

export interface Internet extends AsyncDisposable {
  /** A public host. */
  host: string
  /** This machine's address on that side. */
  ours: string
  /** A private range with a host in it. */
  privateRange: string
  privateHost: string
  linkLocalHost: string
  /** Connects from the outside; returns whether it succeeded. */
  reaches(address: string, port: number): Promise<boolean>
}

export async function openInternet(slot: number, gateway: string): Promise<Internet> {
  const name = `islet-net-${slot}`
  const [near, far] = [`isn${slot}a`, `isn${slot}b`]
  // From 128 on: this machine or its gateway may use the low addresses of that range.
  const ours = `192.0.2.${128 + slot * 4 + 1}`
  const host = `192.0.2.${128 + slot * 4 + 2}`
  const privateHost = `10.99.${slot}.2`
  const linkLocalHost = `169.254.${100 + slot}.2`
  const ip = (...args: string[]) => run('ip', args)
  const inside = (...args: string[]) => run('ip', ['-n', name, ...args])
  let server: ChildProcess | undefined
  const close = async () => {
    if (server) {
      const ended = new Promise((resolve) => server!.once('exit', resolve))
      server.kill('SIGKILL')
      await ended
    }
    await ip('link', 'delete', near).catch(() => {})
    await ip('netns', 'delete', name).catch(() => {})
  }
  await close()
  try {
    await ip('netns', 'add', name)
    await ip('link', 'add', near, 'type', 'veth', 'peer', 'name', far, 'netns', name)
    for (const address of [`${ours}/30`, `10.99.${slot}.1/24`]) await ip('addr', 'add', address, 'dev', near)
    await ip('link', 'set', near, 'up')
    await inside('link', 'set', 'lo', 'up')
    for (const address of [`${host}/30`, `${privateHost}/24`, `${linkLocalHost}/32`]) {
      await inside('addr', 'add', address, 'dev', far)
    }
    await inside('link', 'set', far, 'up')
    await ip('route', 'add', linkLocalHost, 'dev', near)
    // The outside has a route to the sandboxes, which must not help.
    await inside('route', 'add', gateway.replace(/0\.1$/, '0.0/16'), 'via', ours)
    server = spawn('ip', ['netns', 'exec', name, '/usr/bin/python3', '-c', serverProgram(host)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    for await (const line of createInterface(server.stdout!)) if (line === 'ready') break
  } catch (error) {
    await close()
    throw error
  }
  return {
    host,
    ours,
    privateRange: `10.99.${slot}.0/24`,
    privateHost,
    linkLocalHost,
    async reaches(address, port) {
      const program = `import socket; socket.create_connection(('${address}', ${port}), 2)`
      return run('ip', ['netns', 'exec', name, '/usr/bin/python3', '-c', program]).then(
        () => true,
        () => false,
      )
    },
    [Symbol.asyncDispose]: close,
  }
}

/** HTTP answers with the client's address; DNS answers every name with the host's address. */
function serverProgram(host: string): string {
  return `
import http.server, socket, socketserver, struct, threading

class Who(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(self.client_address[0].encode())
    def log_message(self, *_): pass

def answer(query):
    end = 12
    while query[end]: end += query[end] + 1
    kind = struct.unpack('!H', query[end + 1:end + 3])[0]
    count = 1 if kind == 1 else 0
    header = query[:2] + b'\\x81\\x80' + struct.pack('!HHHH', 1, count, 0, 0)
    record = b'\\xc0\\x0c' + struct.pack('!HHIH', 1, 1, 60, 4) + socket.inet_aton('${host}')
    return header + query[12:end + 5] + record * count

class Udp(socketserver.BaseRequestHandler):
    def handle(self):
        query, sock = self.request
        sock.sendto(answer(query), self.client_address)

class Tcp(socketserver.StreamRequestHandler):
    def handle(self):
        reply = answer(self.rfile.read(struct.unpack('!H', self.rfile.read(2))[0]))
        self.wfile.write(struct.pack('!H', len(reply)) + reply)

servers = [http.server.ThreadingHTTPServer(('0.0.0.0', port), Who) for port in (80, 8080)]
servers += [socketserver.ThreadingUDPServer(('${host}', 53), Udp), socketserver.ThreadingTCPServer(('${host}', 53), Tcp)]
for server in servers: threading.Thread(target=server.serve_forever).start()
print('ready', flush=True)
`
}
