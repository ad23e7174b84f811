import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ListeningPort } from '../../guest/guest.ts'
import { choosePort, dialable, ownPort } from './ports.ts'

const open = (port: number, session?: number, address = '0.0.0.0'): ListeningPort => ({
  port,
  address,
  uid: 0,
  ...(session !== undefined && { session }),
})

test('a free port is used, a taken one is replaced by the next free one', () => {
  const taken = new Set([80, 81, 83])
  assert.equal(choosePort(79, { taken, strict: true }), 79)
  assert.equal(choosePort(80, { taken, strict: false }), 82)
  assert.throws(() => choosePort(80, { taken, strict: true }), { code: 'port_taken' })
})

test('the search ends at the last port', () => {
  assert.throws(() => choosePort(65_535, { taken: new Set([65_535]), strict: false }), { code: 'port_taken' })
  const all = new Set(Array.from({ length: 65_536 }, (_, port) => port))
  assert.throws(() => choosePort(1, { taken: all, strict: false }), { code: 'port_taken' })
})

test('a service owns what its session listens on: its own port, else the lowest', () => {
  const ports = [open(22), open(3000, 5), open(9000, 7), open(8000, 7), open(8000, 7, '::')]
  assert.equal(ownPort(ports, 7, 9000)?.port, 9000)
  assert.equal(ownPort(ports, 7, 3000)?.port, 8000)
  assert.equal(ownPort(ports, 7, null)?.port, 8000)
  assert.equal(ownPort(ports, 8, null), undefined)
})

test('of the addresses of a port one that can be dialed comes first', () => {
  const ports = [open(80, 7, '10.0.0.3'), open(80, 7, '127.0.0.1')]
  assert.equal(ownPort(ports, 7, null)?.address, '127.0.0.1')
  assert.deepEqual(
    ['0.0.0.0', '127.0.0.1', '::ffff:127.0.0.1', '::', '::1', '10.0.0.3', '127.0.0.2', 'fe80::1'].map(
      dialable,
    ),
    ['127.0.0.1', '127.0.0.1', '127.0.0.1', '::1', '::1', undefined, undefined, undefined],
  )
})
