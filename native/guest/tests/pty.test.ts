import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { collect, Guest, parseOutput, type Stream, stdinFrame } from './harness.ts'

const SIZE = { cols: 100, rows: 30 }

/** A person at a terminal: types, and reads until something appears. */
class Terminal {
  readonly stream: Stream & { id: string }
  screen = ''
  #typed = 0
  constructor(stream: Stream & { id: string }) {
    this.stream = stream
  }

  type(text: string) {
    this.stream.raw('STDIN', stdinFrame(this.#typed, text))
    this.#typed += Buffer.byteLength(text)
  }

  /** Reads to the end; the exit code. */
  async exited(): Promise<number> {
    for (;;) {
      const message = await this.stream.next('OUTPUT', 'EXITED', 'STDIN_WINDOW').catch((error) => {
        throw new Error(`${error.message}; saw ${JSON.stringify(this.screen)}`)
      })
      if (message.name === 'OUTPUT') this.screen += parseOutput(message).bytes
      if (message.name !== 'EXITED') continue
      this.stream.send('FORGET')
      return message.fields.code
    }
  }

  async see(text: string) {
    while (!this.screen.includes(text)) {
      const message = await this.stream.next('OUTPUT').catch((error) => {
        throw new Error(
          `${error.message}; wanted ${JSON.stringify(text)}, saw ${JSON.stringify(this.screen)}`,
        )
      })
      const { channel, offset, bytes } = parseOutput(message)
      assert.equal(channel, 1)
      this.screen += bytes
      this.stream.send('ACK', { offset: offset + bytes.length })
    }
    const end = this.screen.indexOf(text) + text.length
    const seen = this.screen.slice(0, end)
    this.screen = this.screen.slice(end)
    return seen
  }
}

describe('a terminal', () => {
  let guest: Guest
  before(async () => {
    guest = await Guest.start()
  })
  after(() => guest.stop())

  const open = async (argv: string[], fields = {}) =>
    new Terminal(await guest.spawn(argv, { pty: SIZE, ...fields }))

  test('is one, has the size asked for, and controls the session', async () => {
    const { output, code } = await collect(
      await guest.spawn(
        ['sh', '-c', 'test -t 0 && test -t 1 && test -t 2 && stty size && echo ok > /dev/tty && tty'],
        { pty: SIZE },
      ),
    )
    assert.match(output.toString(), /^30 100\r\nok\r\n\/dev\/pts\/\d+\r\n$/)
    assert.equal(code, 0)
  })

  test('without a size it has 80 columns and 24 rows', async () => {
    assert.equal((await guest.run(['stty', 'size'], { pty: {} })).output.toString(), '24 80\r\n')
  })

  test('tells the program when its size changes', async () => {
    const terminal = await open([
      'sh',
      '-c',
      'trap "stty size" WINCH; echo ready; while :; do sleep 0.02; done',
    ])
    await terminal.see('ready')
    await guest.ask('RESIZE', { id: terminal.stream.id, size: { cols: 133, rows: 44 } })
    await terminal.see('44 133')
    terminal.stream.send('FORGET')
  })

  test('Ctrl-C interrupts, Ctrl-D ends the input', async () => {
    const interrupted = await open(['cat'])
    interrupted.type('hello\r')
    await interrupted.see('hello\r\nhello\r\n')
    interrupted.type('\x03')
    await interrupted.see('^C')
    const exited = await interrupted.stream.next('EXITED')
    assert.equal(exited.fields.signal, 2)
    interrupted.stream.send('FORGET')
    const ended = await open(['cat'])
    ended.type('x\r')
    await ended.see('x\r\nx\r\n')
    ended.stream.send('STDIN_END')
    assert.equal((await ended.stream.next('EXITED')).fields.code, 0)
    ended.stream.send('FORGET')
  })

  test('a shell in it has job control', async () => {
    const shell = await open(['sh', '-i'], { env: ['PS1=READY> ', 'PATH=/usr/bin:/bin', 'ENV='] })
    await shell.see('READY> ')
    shell.type(`sh -c 'printf "run%s\\n" ning; exec sleep 1000'\r`)
    await shell.see('running\r\n')
    shell.type('\x1a')
    await shell.see('Stopped')
    await shell.see('READY> ')
    shell.type('jobs\r')
    await shell.see('Stopped')
    await shell.see('READY> ')
    shell.type('kill -9 %1\r')
    do shell.type('\r')
    while (!(await shell.see('READY> ')).includes('Killed'))
    shell.type('exit 9\r')
    assert.equal(await shell.exited(), 9)
  })

  test('large output arrives whole', async () => {
    const { output } = await guest.run(['seq', '1', '100000'], { pty: SIZE })
    assert.equal(output.toString(), Array.from({ length: 100_000 }, (_, i) => `${i + 1}\r\n`).join(''))
  })

  test('many lines typed at once all reach the program', async () => {
    const lines = Array.from({ length: 3000 }, (_, i) => `line ${i}\r`).join('')
    const terminal = await open(['sh', '-c', 'stty -echo; echo ready; wc -l'])
    await terminal.see('ready')
    terminal.type(lines)
    terminal.stream.send('STDIN_END')
    await terminal.see('3000')
    assert.equal(await terminal.exited(), 0)
  })

  test('survives a broken connection', async () => {
    const terminal = await open(['cat'], { id: 'screen' })
    terminal.type('before\r')
    await terminal.see('before\r\nbefore\r\n')
    await guest.reconnect()
    const stream = guest.request('ATTACH', { id: 'screen', offset: 16 })
    const { process: record } = (await stream.next('ATTACHED')).fields
    assert.equal(record.stdinOffset, 7)
    await stream.next('STDIN_WINDOW')
    stream.raw('STDIN', stdinFrame(7, 'after\r'))
    let seen = ''
    while (!seen.endsWith('after\r\nafter\r\n')) seen += parseOutput(await stream.next('OUTPUT')).bytes
    stream.send('FORGET')
  })
})
