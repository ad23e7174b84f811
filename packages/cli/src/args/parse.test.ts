import assert from 'node:assert/strict'
import { test } from 'node:test'
import { InvalidArgumentError } from 'commander'
import { cpu, duration, integer, lasting, many, pair, size } from './parse.ts'
import { toCommand } from './words.ts'

test('durations, sizes and cores are parsed with their units', () => {
  assert.deepEqual(['250', '250ms', '30s', '2h'].map(duration), [250, 250, 30_000, 7_200_000])
  assert.deepEqual(['512Mi', '1.5Gi', '1000'].map(size), ['512Mi', '1.5Gi', '1000'])
  assert.deepEqual(['0.5', '500m'].map(cpu), ['0.5', '500m'])
  assert.equal(integer('16'), 16)
  assert.deepEqual(['0', 'never', '10m'].map(lasting), [0, 0, 600_000])
})

test('a value that does not parse is an InvalidArgumentError', () => {
  const attempts = [
    () => duration('soon'),
    () => size('big'),
    () => cpu('fast'),
    () => integer('-1'),
    () => pair('x'),
  ]
  for (const attempt of attempts) assert.throws(attempt, InvalidArgumentError)
})

test('a repeated option collects its values', () => {
  assert.deepEqual(pair('b==2', pair('a=1')), { a: '1', b: '=2' })
  assert.deepEqual(many('b', many('a')), ['a', 'b'])
})

test('one word is shell text; several words are a program and its arguments', () => {
  assert.equal(toCommand(['echo hi | wc'], ''), 'echo hi | wc')
  assert.deepEqual(toCommand(['echo', 'hi'], ''), ['echo', 'hi'])
  assert.throws(() => toCommand([], 'like this'), { code: 'usage', hint: 'like this' })
})
