import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as plain from './client.ts'
import * as full from './index.ts'

// Checked by the compiler: the types printed for clients equal those of the schemas. Types of requests may be narrower: a number that a schema
// reads from the text of a query has no type there.
type Differing = {
  [Name in full.RouteName]: [plain.BodyOf<Name>] extends [full.BodyOf<Name>]
    ? [plain.ResponseOf<Name>, full.ResponseOf<Name>] extends [full.ResponseOf<Name>, plain.ResponseOf<Name>]
      ? never
      : Name
    : Name
}[full.RouteName]
const differing: [Differing] extends [never] ? [] : [Differing] = []

describe('the contract for clients', () => {
  it('has the types of the schemas', () => {
    assert.deepEqual(differing, [])
  })

  it('has every route, with its method and path, and a shape where the answer is JSON', () => {
    assert.deepEqual(Object.keys(plain.ROUTES), Object.keys(full.ROUTES))
    for (const [name, route] of Object.entries(full.ROUTES)) {
      const { method, path, response } = plain.ROUTES[name as plain.RouteName]
      assert.deepEqual({ method, path }, { method: route.method, path: route.path })
      assert.equal(
        response === 'nothing',
        route.response === null || typeof route.response === 'string',
        name,
      )
    }
  })

  it('finds a missing field of an answer, and where, and allows extra fields', () => {
    const info = { id: 'trm-1', sandboxId: 'sbx-1', pty: true, keepAwake: false, status: 'running' }
    const terminal = { ...info, encoding: 'raw', processId: null, channel: '/x', createdAt: 'now', new: 1 }
    const list = plain.ROUTES.listTerminals.response
    assert.equal(plain.mismatch(list, { terminals: [] }), undefined)
    assert.equal(plain.mismatch(list, { terminals: [terminal] }), undefined)
    const cases: [unknown, string][] = [
      [{ terminals: [terminal, { ...terminal, pty: 'yes' }] }, 'it.terminals[1].pty is not a boolean'],
      [{ terminals: [{ ...terminal, processId: 5 }] }, 'it.terminals[0].processId has none of its forms'],
      [{ terminals: {} }, 'it.terminals is not a list'],
      [{}, 'it.terminals is not a list'],
      [[], 'it is not an object'],
      [null, 'it is not an object'],
      ['text', 'it is not an object'],
    ]
    for (const [value, problem] of cases) assert.equal(plain.mismatch(list, value), problem)
  })
})
