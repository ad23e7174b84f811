import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import * as messages from '../../../packages/server/src/guest/messages.gen.ts'
import {
  decodeFields,
  encodeFields,
  type Fields,
  type FieldTable,
} from '../../../packages/server/src/wire/fields.ts'
import { encodeFrame, FrameDecoder } from '../../../packages/server/src/wire/frames.ts'
import { golden } from './golden.ts'
import { Guest } from './harness.ts'

const TABLES = messages.FIELDS as unknown as Record<string, FieldTable | undefined>
type Name = keyof typeof messages.MESSAGE

function frame(name: Name, stream: number, fields: Fields | string): Buffer {
  const payload = typeof fields === 'string' ? Buffer.from(fields) : encodeFields(TABLES[name]!, fields)
  return encodeFrame(messages.MESSAGE[name], stream, payload)
}

/** What the bytes in golden.txt mean, in the same order: message, stream, fields, and the answer's. */
const MEANINGS: [Name, number, Fields | string, Name, Fields | string][] = [
  ['PING', 0, 'islet', 'PONG', 'islet'],
  [
    'REALPATH',
    1,
    { path: '/proc/../usr/./bin/..' },
    'OK',
    { entry: [], port: [], process: [], path: '/usr' },
  ],
  [
    'STAT',
    0x01020304,
    { path: '/no/such/path', follow: 1 },
    'ERROR',
    { kind: 2, errnoName: 'ENOENT', stage: 'stat', message: '/no/such/path: No such file or directory' },
  ],
  [
    'SIGNAL',
    4294967295,
    { id: 'prc-none', signal: 15, group: 1 },
    'ERROR',
    { kind: 12, errnoName: '', stage: 'request', message: 'no process has this id' },
  ],
  [
    'READ',
    5,
    { path: '/', offset: 4294967297, length: 0 },
    'ERROR',
    { kind: 5, errnoName: 'EISDIR', stage: 'open', message: '/: Is a directory' },
  ],
  [
    'SPAWN',
    6,
    {
      id: 'prc-1',
      argv: ['/no/such', 'ü'],
      env: ['A=b'],
      cwd: '/',
      timeoutMs: 5,
      rlimit: [{ resource: 7, soft: 1, hard: 2 }],
    },
    'ERROR',
    { kind: 2, errnoName: 'ENOENT', stage: 'exec', message: '/no/such: No such file or directory' },
  ],
  [
    'WATCH',
    7,
    { path: '/no/such', recursive: 1, ignore: ['node_modules', '*.log'] },
    'ERROR',
    { kind: 2, errnoName: 'ENOENT', stage: 'watch', message: '/no/such: No such file or directory' },
  ],
  [
    'EXPOSE',
    8,
    { socket: '../link.sock' },
    'ERROR',
    { kind: 1, errnoName: '', stage: 'request', message: "socket is the name of one beside the guest's own" },
  ],
]

describe('golden bytes', () => {
  let guest: Guest
  before(async () => {
    guest = await Guest.start()
  })
  after(() => guest.stop())

  test('there is a meaning for each', () => {
    assert.equal(golden().length, MEANINGS.length)
  })

  for (const [i, [name, stream, fields, answer, answerFields]] of MEANINGS.entries()) {
    test(`${golden()[i]?.title}`, async () => {
      const { sent, answered } = golden()[i]!
      assert.equal(
        frame(name, stream, fields).toString('hex'),
        sent.toString('hex'),
        'the server writes these bytes',
      )
      // The server reads the answer's bytes,
      new FrameDecoder().push(answered, ({ type, payload, stream: on }) => {
        assert.deepEqual([type, on], [messages.MESSAGE[answer], stream])
        const meaning =
          typeof answerFields === 'string' ? payload.toString() : decodeFields(TABLES[answer]!, payload)
        assert.deepEqual(meaning, answerFields)
      })
      // and the guest, given the request's bytes, writes exactly them.
      const bytes: Buffer[] = []
      const enough = new Promise<void>((done) => {
        guest.socket!.on('data', function take(chunk: Buffer) {
          bytes.push(chunk)
          if (Buffer.concat(bytes).length < answered.length) return
          guest.socket!.off('data', take)
          done()
        })
      })
      guest.socket!.write(sent)
      await Promise.race([enough, guest.closed()])
      assert.equal(
        Buffer.concat(bytes).toString('hex'),
        answered.toString('hex'),
        'the guest answers with these bytes',
      )
    })
  }
})
