// The one host of the tests' internet: DNS for *.islet.test and HTTP over a directory. Run inside its own network
// namespace: node internet-host.ts <directory> <address of every name> <address of the DNS>
import { createSocket } from 'node:dgram'
import { createReadStream } from 'node:fs'
import { createServer } from 'node:http'
import { join, normalize } from 'node:path'

const [directory = '.', address = '127.0.0.1', dnsAddress = address] = process.argv.slice(2)
const NAME = /^[a-z-]+\.islet\.test$/
const NXDOMAIN = 3

const dns = createSocket('udp4')
dns.on('message', (query, from) => dns.send(answerTo(query), from.port, from.address))
// Not any address: answers must come from the one that was asked.
dns.bind(53, dnsAddress)

const web = createServer((request, response) => {
  const path = normalize(decodeURIComponent(new URL(request.url ?? '/', 'http://x').pathname))
  if (path === '/hello') return response.end(`hello ${request.socket.remoteAddress}\n`)
  const file = createReadStream(join(directory, path))
  file.on('error', () => response.writeHead(404).end())
  file.pipe(response)
})
web.listen(80, '0.0.0.0', () => console.log('ready'))

/** An A record for the names there are, an empty answer for other types, NXDOMAIN for the rest. */
function answerTo(query: Buffer): Buffer {
  const labels: string[] = []
  let at = 12
  for (let length = query[at++] ?? 0; length > 0; length = query[at++] ?? 0) {
    labels.push(query.subarray(at, at + length).toString())
    at += length
  }
  const type = query.readUInt16BE(at)
  const exists = NAME.test(labels.join('.').toLowerCase())
  const hasAnswer = exists && type === 1
  const head = Buffer.from(query.subarray(0, 12))
  head.writeUInt16BE(0x8180 | (exists ? 0 : NXDOMAIN), 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt16BE(hasAnswer ? 1 : 0, 6)
  head.writeUInt32BE(0, 8)
  const question = query.subarray(12, at + 4)
  const record = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, ...address.split('.').map(Number)])
  return Buffer.concat(hasAnswer ? [head, question, record] : [head, question])
}
