// The program that tests/e2e/previews.test.ts runs inside: an HTTP and WebSocket server on 127.0.0.1 and another on ::1.
import { createServer } from 'node:http'
import { WebSocketServer } from 'ws'

const [port, port6] = process.argv.slice(2).map(Number)

const server = createServer((incoming, outgoing) => {
  const { pathname } = new URL(incoming.url, 'http://localhost')
  if (pathname === '/echo') return incoming.pipe(outgoing)
  if (pathname === '/headers')
    return outgoing.end(JSON.stringify({ url: incoming.url, headers: incoming.headers }))
  if (pathname === '/binary') return outgoing.end(Buffer.from(Array.from({ length: 256 }, (_, i) => i)))
  if (pathname === '/zeros') return zeros(outgoing)
  if (pathname === '/events') {
    outgoing.writeHead(200, { 'Content-Type': 'text/event-stream' })
    outgoing.write('data: first\n\n')
    incoming.on('close', () => outgoing.end())
    return
  }
  outgoing.setHeader('Content-Type', 'text/html')
  outgoing.end('<h1>inside</h1>')
})
new WebSocketServer({ server }).on('connection', (socket) => {
  socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }))
})
server.listen(port, '127.0.0.1', () => {
  createServer((_incoming, outgoing) => outgoing.end('on ::1')).listen(port6, '::1', () => console.log('up'))
})

async function zeros(outgoing) {
  const piece = Buffer.alloc(1024 * 1024)
  for (let i = 0; i < 200 && !outgoing.destroyed; i++)
    if (!outgoing.write(piece))
      await new Promise((resolve) => outgoing.once('drain', resolve).once('close', resolve))
  outgoing.end()
}
