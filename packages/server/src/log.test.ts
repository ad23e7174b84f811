import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { IsletError } from '@islet/contract'
import { createLog, type LogOptions } from './log.ts'

function capture(options: LogOptions = {}) {
  const lines: string[] = []
  const log = createLog({ ...options, destination: { write: (line: string) => void lines.push(line) } })
  return { log, text: () => lines.join('') }
}

describe('the log', () => {
  it('writes one JSON object per line', () => {
    const { log, text } = capture()
    log.info({ sandbox: 'sbx-1' }, 'made')
    const line = JSON.parse(text())
    assert.deepEqual(
      { level: line.level, msg: line.msg, sandbox: line.sandbox },
      { level: 'info', msg: 'made', sandbox: 'sbx-1' },
    )
  })

  it('hides fields that may hold secrets, also one level down', () => {
    const { log, text } = capture()
    log.info(
      {
        env: { A: 'sesame' },
        authorization: 'sesame',
        command: 'echo sesame',
        request: { stdin: 'sesame', id: 7 },
      },
      'x',
    )
    assert.doesNotMatch(text(), /sesame/)
    assert.equal(JSON.parse(text()).request.id, 7)
  })

  it('does not change the object it was given', () => {
    const { log } = capture()
    const given = { env: { A: '1' } }
    log.info(given, 'x')
    assert.deepEqual(given, { env: { A: '1' } })
  })

  it('cuts keys out of texts, paths and stacks', () => {
    const { log, text } = capture()
    const key = `islet_${'k'.repeat(43)}`
    log.error({ err: new Error(`bad ${key}`), path: `/v1/${key}` }, `Bearer ${key}`)
    log.info(`islet.bearer.${key}`)
    assert.doesNotMatch(text(), /kkkk/)
  })

  it('shows the code and stack of an error under both names people use, without its details', () => {
    for (const name of ['err', 'error']) {
      const { log, text } = capture()
      log.warn({ [name]: new IsletError('conflict', 'no', { details: { seen: 'sesame' } }) }, 'x')
      const shown = JSON.parse(text())[name]
      assert.equal(shown.code, 'conflict')
      assert.match(shown.stack, /log\.test\.ts/)
      assert.doesNotMatch(text(), /sesame/)
    }
  })

  it('prints lines for people in the text format', () => {
    const { log, text } = capture({ format: 'text' })
    log.warn({ sandbox: 'sbx-1', n: 2 }, 'slow')
    assert.match(text(), /^\d\d:\d\d:\d\d\.\d{3} WARN {2}slow sandbox=sbx-1 n=2\n$/)
  })
})
