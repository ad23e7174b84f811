import assert from 'node:assert/strict'
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { newId } from '@islet/contract'
import { type JWTPayload, SignJWT } from 'jose'
import { Tokens } from './tokens.ts'

const HOUR_S = 3600
const sandboxId = newId('sandbox')
let dataDir: string
let tokens: Tokens
beforeEach(async () => {
  dataDir = mkdtempSync(join(tmpdir(), 'islet-tokens-'))
  tokens = await Tokens.open(dataDir)
})
afterEach(() => rmSync(dataDir, { recursive: true }))

const keyPath = () => join(dataDir, 'token-key')
const ownKey = () => createPrivateKey(readFileSync(keyPath(), 'utf8'))
const nowS = () => Math.floor(Date.now() / 1000)

/** As ours are, but for what is changed. */
function forge(change: JWTPayload = {}, key: KeyObject = ownKey()): Promise<string> {
  const claims = {
    iss: 'islet',
    aud: 'sandbox',
    sub: sandboxId,
    iat: nowS(),
    exp: nowS() + HOUR_S,
    ...change,
  }
  return new SignJWT(claims).setProtectedHeader({ alg: 'EdDSA' }).sign(key)
}

describe('the signing key', () => {
  it('is readable by its owner alone, and is closed again if it is not', async () => {
    assert.equal(statSync(keyPath()).mode & 0o777, 0o600)
    chmodSync(keyPath(), 0o644)
    await Tokens.open(dataDir)
    assert.equal(statSync(keyPath()).mode & 0o777, 0o600)
  })

  it('outlives the server, and so do its tokens', async () => {
    const { token } = tokens.issue(sandboxId)
    assert.equal((await (await Tokens.open(dataDir)).verify(token)).sandboxId, sandboxId)
  })

  it('is of its server: a token of another one is nothing', async () => {
    rmSync(keyPath())
    const { token } = (await Tokens.open(dataDir)).issue(sandboxId)
    await assert.rejects(tokens.verify(token), { code: 'unauthorized' })
  })

  it('that cannot be used is told by its path, not by its content', async () => {
    const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
    for (const content of ['secret-nonsense', rsa.export({ type: 'pkcs8', format: 'pem' })]) {
      writeFileSync(keyPath(), content)
      await assert.rejects(Tokens.open(dataDir), (error: Error) => {
        assert.ok(error.message.includes(keyPath()))
        assert.ok(!String(error.stack).includes('secret-nonsense'))
        return true
      })
    }
  })
})

describe('a token', () => {
  it('says which sandbox it is for and until when', async () => {
    const { token, expiresAt } = tokens.issue(sandboxId)
    const left = Date.parse(expiresAt) - Date.now()
    assert.ok(left > 3_598_000 && left <= 3_600_000)
    assert.equal((await tokens.verify(token)).sandboxId, sandboxId)
    const [header, payload] = token
      .split('.')
      .slice(0, 2)
      .map((part) => JSON.parse(Buffer.from(part, 'base64url').toString()))
    assert.equal(header.alg, 'EdDSA')
    assert.equal(payload.exp * 1000, Date.parse(expiresAt))
  })

  it('is what this server signed and nothing else', async () => {
    const other = generateKeyPairSync('ed25519').privateKey
    const publicPem = createPublicKey(ownKey()).export({ type: 'spki', format: 'pem' })
    const secret = new TextEncoder().encode(String(publicPem))
    const { token } = tokens.issue(sandboxId)
    const [header, payload, signature] = token.split('.') as [string, string, string]
    const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString())
    const wrong: Record<string, string> = {
      nothing: '',
      'no JWT': 'islet_abc',
      'two parts': `${header}.${payload}`,
      'no signature': `${header}.${payload}.`,
      'alg none': `${encode({ alg: 'none' })}.${payload}.`,
      'alg none with a signature': `${encode({ alg: 'none' })}.${payload}.${signature}`,
      'the public key as a secret': await new SignJWT(claims)
        .setProtectedHeader({ alg: 'HS256' })
        .sign(secret),
      'another sandbox put in': `${header}.${encode({ ...claims, sub: newId('sandbox') })}.${signature}`,
      'a later end put in': `${header}.${encode({ ...claims, exp: claims.exp + 1 })}.${signature}`,
      'another key': await forge({}, other),
      'another key, for a thousand years': await forge({ exp: nowS() + 1000 * 366 * 86_400 }, other),
      'another issuer': await forge({ iss: 'someone' }),
      'no issuer': await forge({ iss: undefined }),
      'another audience': await forge({ aud: 'file' }),
      'the audience of inside': tokens.issueInside(sandboxId),
      'a grant for a file': tokens.issueGrant(
        'file',
        { sandboxId, path: '/x', method: 'GET' },
        { lifetimeMs: 60_000 },
      ).grant,
      'no end': await forge({ exp: undefined }),
      'no sandbox': await forge({ sub: undefined }),
      'not a sandbox': await forge({ sub: '../etc' }),
      'not yet': await forge({ nbf: nowS() + HOUR_S }),
      'far too long': `${token}${'x'.repeat(20_000)}`,
    }
    assert.equal((await tokens.verify(await forge())).sandboxId, sandboxId)
    for (const [name, candidate] of Object.entries(wrong))
      await assert.rejects(tokens.verify(candidate), { code: 'unauthorized' }, name)
  })

  it('of the outside is nothing inside, nor a grant', async () => {
    const { token } = tokens.issue(sandboxId)
    await assert.rejects(tokens.verifyInside(token), { code: 'unauthorized' })
    await assert.rejects(tokens.verifyGrant('file', token), { code: 'unauthorized' })
    assert.deepEqual(await tokens.verifyInside(tokens.issueInside(sandboxId)), { sandboxId })
  })

  it('ends when it says, also when it was found good before', async (t) => {
    t.mock.timers.enable({ apis: ['Date'], now: Date.now() })
    const { token, expiresAt } = tokens.issue(sandboxId, { lifetimeMs: 60_000 })
    const end = Date.parse(expiresAt)
    t.mock.timers.setTime(end - 1)
    assert.equal((await tokens.verify(token)).sandboxId, sandboxId)
    for (const late of [0, 1, 1000, 86_400_000]) {
      t.mock.timers.setTime(end + late)
      await assert.rejects(tokens.verify(token), { code: 'token_expired' })
    }
  })
})
