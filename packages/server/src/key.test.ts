import assert from 'node:assert/strict'
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { loadOrCreateKey } from './key.ts'

describe('the admin key', () => {
  let dataDir: string
  beforeEach(() => {
    dataDir = mkdtempSync(join(tmpdir(), 'islet-key-'))
  })
  afterEach(() => rmSync(dataDir, { recursive: true, force: true }))

  it('is made once, readable by its owner alone, and found again', () => {
    const first = loadOrCreateKey(dataDir)
    assert.match(first.reveal(), /^islet_[A-Za-z0-9_-]{43}$/)
    assert.equal(statSync(join(dataDir, 'key')).mode & 0o777, 0o600)
    assert.equal(loadOrCreateKey(dataDir).reveal(), first.reveal())
    assert.deepEqual(readdirSync(dataDir), ['key'])
  })

  it('makes a missing data directory', () => {
    const key = loadOrCreateKey(join(dataDir, 'a', 'b'))
    assert.equal(readFileSync(join(dataDir, 'a', 'b', 'key'), 'utf8').trim(), key.reveal())
  })

  it('matches itself and nothing else, of any length', () => {
    const key = loadOrCreateKey(dataDir)
    assert.equal(key.keyMatches(key.reveal()), true)
    for (const wrong of ['', 'islet_', `${key.reveal()}x`, key.reveal().slice(0, -1), 'é'.repeat(100_000)]) {
      assert.equal(key.keyMatches(wrong), false)
    }
  })

  it('closes a key file that others may read, and says so', () => {
    const key = loadOrCreateKey(dataDir)
    chmodSync(join(dataDir, 'key'), 0o644)
    const warnings: unknown[] = []
    const again = loadOrCreateKey(dataDir, {
      log: { warn: (...line: unknown[]) => void warnings.push(line) } as never,
    })
    assert.equal(again.reveal(), key.reveal())
    assert.equal(statSync(join(dataDir, 'key')).mode & 0o777, 0o600)
    assert.equal(warnings.length, 1)
    assert.doesNotMatch(JSON.stringify(warnings), /islet_/)
  })

  it('may be read by a group, and by nobody else again when the group is gone', {
    skip: process.geteuid?.() !== 0 && 'only root gives files away',
  }, () => {
    const path = join(dataDir, 'key')
    const lookedAt = () => ({ mode: statSync(path).mode & 0o777, gid: statSync(path).gid })
    loadOrCreateKey(dataDir, { gid: 47_113 })
    assert.deepEqual(lookedAt(), { mode: 0o640, gid: 47_113 })
    loadOrCreateKey(dataDir, { gid: 47_114 })
    assert.deepEqual(lookedAt(), { mode: 0o640, gid: 47_114 })
    loadOrCreateKey(dataDir)
    assert.equal(lookedAt().mode, 0o600)
  })

  it('takes a configured key and writes no file', () => {
    const key = loadOrCreateKey(dataDir, { configured: 'islet_configured_key' })
    assert.equal(key.path, undefined)
    assert.equal(key.keyMatches('islet_configured_key'), true)
    assert.deepEqual(readdirSync(dataDir), [])
  })

  it('refuses a key that is short, empty or not plain text', () => {
    assert.throws(() => loadOrCreateKey(dataDir, { configured: 'short' }), /ISLET_API_KEY/)
    assert.throws(() => loadOrCreateKey(dataDir, { configured: 'with spaces in the key' }), /ISLET_API_KEY/)
    writeFileSync(join(dataDir, 'key'), '\n', { mode: 0o600 })
    assert.throws(() => loadOrCreateKey(dataDir), /is not usable/)
  })
})
