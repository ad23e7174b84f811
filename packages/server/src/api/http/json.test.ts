import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LIMITS } from '@islet/contract'
import { jsonPieces, sizeOf } from './json.ts'
import { checkShape } from './json-shape.ts'

const VALUES = {
  nothing: {},
  plain: { a: 1, b: [true, null, 'x'], c: { d: undefined, e: 'é' } },
  'a long text': { text: '\0"\\\n😀é'.repeat(50_000), after: 1 },
  'a text cut within a character': `${'x'.repeat(16 * 1024 - 1)}😀${'y'.repeat(40_000)}`,
  'half a character': { text: `${'x'.repeat(100_000)}\ud800` },
  'a long list': Array.from({ length: 50_000 }, (_, n) => ({ n, text: `entry ${n}` })),
  'lists in lists': { lists: [[], [[]], Array(40_000).fill('x')], empty: [] },
}

for (const [name, value] of Object.entries(VALUES))
  test(`in pieces it is the same JSON: ${name}`, () => {
    const pieces = [...jsonPieces(value)]
    assert.ok(pieces.join('') === JSON.stringify(value))
    assert.ok(pieces.every((piece) => piece.length <= 8 * 16 * 1024))
    for (const piece of pieces) assert.ok(Buffer.from(piece).toString() === piece)
  })

test('what can be read only one after the other becomes a list', () => {
  const items = function* () {
    yield 1
    yield { two: 2 }
  }
  assert.equal([...jsonPieces({ items: items() })].join(''), '{"items":[1,{"two":2}]}')
  assert.equal(sizeOf({ items: items() }, 1000), Number.POSITIVE_INFINITY)
})

test('a body of too many values, members or levels is refused before it is read', () => {
  const refused = (text: string) =>
    assert.throws(() => checkShape(Buffer.from(text)), { code: 'bad_request' })
  const taken = (text: string) => checkShape(Buffer.from(text))
  refused('['.repeat(LIMITS.jsonDepth + 10))
  refused(`[${'[],'.repeat(LIMITS.jsonValues)}0]`)
  refused(`{${'"a":1,'.repeat(LIMITS.jsonMembers)}"b":2}`)
  taken(`{"a":"${'[{,:\\"'.repeat(100_000)}"}`)
  taken(`{"a":"\\\\","b":${'['.repeat(500)}${']'.repeat(500)}}`)
  taken('"never ends')
})
