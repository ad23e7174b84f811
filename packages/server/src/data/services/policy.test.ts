import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ProcessInfo, StartServiceParsed } from '@islet/contract'
import { afterEnd, whyEnded } from './policy.ts'

type Policy = StartServiceParsed['restartPolicy']

const verdict = (
  restartPolicy: Policy,
  why?: string,
  options: Partial<StartServiceParsed> = {},
  restartCount = 0,
) => afterEnd({ name: 'a', start: 'a', restartPolicy, ...options }, { restartCount }, why)

test('each policy restarts what it should', () => {
  const table: [Policy, string | undefined, string][] = [
    [undefined, undefined, 'stop'],
    [undefined, 'why', 'fail'],
    ['never', undefined, 'stop'],
    ['never', 'why', 'fail'],
    ['on-failure', undefined, 'stop'],
    ['on-failure', 'why', 'restart'],
    ['always', undefined, 'restart'],
    ['always', 'why', 'restart'],
  ]
  for (const [policy, why, verb] of table) assert.equal(verdict(policy, why).verb, verb, `${policy} ${why}`)
})

test('maxRestarts is a limit, and 0 means none', () => {
  assert.equal(verdict('always', 'why', { maxRestarts: 2 }, 1).verb, 'restart')
  assert.deepEqual(verdict('always', 'Why.', { maxRestarts: 2 }, 2), {
    verb: 'fail',
    reason: 'It was restarted 2 times. Why.',
  })
  assert.equal(verdict('always', undefined, { maxRestarts: 1 }, 1).verb, 'fail')
  assert.equal(verdict('always', 'why', { maxRestarts: 0 }, 1_000_000).verb, 'restart')
})

test('the delay is a second, or as asked, and never 0', () => {
  assert.deepEqual(verdict('always'), { verb: 'restart', delayMs: 1000 })
  assert.deepEqual(verdict('always', 'why', { restartDelay: 2500 }), { verb: 'restart', delayMs: 2500 })
  assert.deepEqual(verdict('always', 'why', { restartDelay: 0 }), { verb: 'restart', delayMs: 20 })
})

test('an end is described by exit code, signal and memory limit', () => {
  const result = { exitCode: 0, signal: null, timedOut: false, oom: false, durationMs: 1 }
  const why = (patch: Partial<NonNullable<ProcessInfo['result']>>) => whyEnded('It', { ...result, ...patch })
  assert.equal(why({}), undefined)
  assert.equal(why({ exitCode: 3 }), 'It ended with exit code 3.')
  assert.equal(why({ exitCode: 137, signal: 'SIGKILL' }), 'It was ended by SIGKILL.')
  assert.match(why({ exitCode: 137, signal: 'SIGKILL', oom: true })!, /memory limit/)
  assert.equal(whyEnded('It', null), 'It was lost.')
})
