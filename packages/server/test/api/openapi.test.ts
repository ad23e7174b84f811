import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { ERRORS, ROUTES, type Route } from '@islet/contract'
import { type OpenApi, openApi } from '../../src/api/openapi/openapi.ts'
import { apiPage, errorsPage } from '../support/reference-pages.ts'
import { startTestApi } from '../support/server.ts'

describe('the OpenAPI document', () => {
  const document = openApi()

  it('has every route of the table, once', () => {
    const listed = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    )
    assert.deepEqual(
      listed.sort(),
      Object.values<Route>(ROUTES)
        .map(({ method, path }) => `${method} ${path}`)
        .sort(),
    )
  })

  it('has every code of the error table', () => {
    const { error } = document.components.schemas.Error!.properties as {
      error: { properties: { code: { enum: string[] } } }
    }
    assert.deepEqual(error.properties.code.enum, Object.keys(ERRORS))
  })

  it('refers only to what it holds', () => {
    const text = JSON.stringify(document)
    for (const [, kind, name] of text.matchAll(/"#\/components\/(\w+)\/([^"]+)"/g)) {
      assert.ok((document.components as Record<string, object>)[kind!]![name as never], `${kind} ${name}`)
    }
    assert.doesNotMatch(text, /\$defs|"\$id"|"\$schema"/)
  })

  it('says what is needed to make and use a sandbox', () => {
    const create = document.paths['/v1/sandboxes']!.post!
    assert.deepEqual(create.requestBody?.content['application/json']?.schema, {
      $ref: '#/components/schemas/CreateSandbox',
    })
    const { CreateSandbox, Sandbox, Exec } = document.components.schemas
    assert.equal(CreateSandbox?.additionalProperties, false)
    assert.equal(CreateSandbox?.required, undefined)
    assert.deepEqual(Exec?.required, ['command'])
    assert.equal(Sandbox?.additionalProperties, undefined)
    const [path] = document.paths['/v1/sandboxes/{id}/files']!.get!.parameters!.filter(
      ({ name }) => name === 'path',
    )
    assert.deepEqual([path?.in, path?.required], ['query', true])
  })

  it('says of which answers it is told that the sandbox was woken', () => {
    for (const { method, path, status, wakes } of Object.values<Route>(ROUTES)) {
      const { responses } = document.paths[path]![method.toLowerCase()]!
      const { headers = {} } = responses[status] as { headers?: object }
      assert.equal('Islet-Auto-Resumed' in headers, wakes === true, `${method} ${path}`)
    }
  })

  it('is served to anyone, and so is the page of it', async () => {
    await using api = await startTestApi()
    const served = await fetch(`${api.url}/openapi.json`)
    assert.equal(served.headers.get('content-type'), 'application/json')
    assert.deepEqual((await served.json()) as OpenApi, JSON.parse(JSON.stringify(document)))
    const page = await fetch(`${api.url}/docs`)
    assert.match(page.headers.get('content-type') ?? '', /^text\/html/)
    const text = await page.text()
    for (const { path, summary } of Object.values<Route>(ROUTES)) {
      assert.ok(text.includes(path) && text.includes(summary.slice(0, 10)), path)
    }
  })

  it('is where a browser that asks for / is led; a program gets a pointer to it', async () => {
    await using api = await startTestApi()
    const accept = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'
    const browser = await fetch(`${api.url}/`, { headers: { accept } })
    assert.deepEqual([browser.status, browser.redirected, browser.url], [200, true, `${api.url}/docs`])
    assert.match(await browser.text(), /<h1>Islet API/)
    const program = await fetch(`${api.url}/`)
    assert.deepEqual(await program.json(), { name: 'islet', docs: '/docs', openapi: '/openapi.json' })
    assert.equal((await fetch(`${api.url}/`, { method: 'POST' })).status, 404)
    assert.equal((await fetch(`${api.url}/other`, { headers: { accept } })).status, 401)
  })

  it('is a page that loads nothing and runs nothing', async () => {
    await using api = await startTestApi()
    const page = await fetch(`${api.url}/docs`)
    assert.match(page.headers.get('content-security-policy') ?? '', /^default-src 'none'; style-src 'sha256-/)
    assert.doesNotMatch(await page.text(), /<script|<link|src=|https?:\/\//)
  })
})

describe('the reference', () => {
  for (const [name, print] of [
    ['errors.md', errorsPage],
    ['api.md', apiPage],
  ] as const) {
    it(`${name} is what the tables say (UPDATE=1 rewrites it)`, () => {
      const path = fileURLToPath(new URL(`../../../../docs/reference/${name}`, import.meta.url))
      if (process.env.UPDATE) writeFileSync(path, print())
      assert.equal(readFileSync(path, 'utf8'), print())
    })
  }
})
