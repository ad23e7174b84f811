// GET /docs: the OpenAPI document as one page, without scripts and without anything from elsewhere. GET / leads there.
import { createHash } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { escapeHtml } from '../../lib/html.ts'
import { sendText } from '../http/send.ts'
import { type OpenApi, type Operation, openApi } from './openapi.ts'
import { schemaText } from './schema-text.ts'

const STYLE = `
:root{color-scheme:light dark;--line:#8884;--soft:#8882;--accent:#0a7ea4}
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
h1{margin-bottom:0}h2{margin-top:2.5rem;text-transform:capitalize}a{color:var(--accent)}
details{border:1px solid var(--line);border-radius:.5rem;margin:.5rem 0}
summary{padding:.5rem .75rem;cursor:pointer;display:flex;gap:.75rem;align-items:baseline;flex-wrap:wrap}
summary code{font-weight:600}.method{font:700 .75rem ui-monospace,monospace;min-width:4rem;color:var(--accent)}
.what{opacity:.75}.in{padding:0 .75rem .75rem}h4{margin:.75rem 0 .25rem}
pre{background:var(--soft);border-radius:.5rem;padding:.75rem;overflow:auto;margin:.25rem 0;font:13px/1.45 ui-monospace,monospace}
`
const STYLE_HASH = createHash('sha256').update(STYLE).digest('base64')
const POLICY = `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`

/** For programs that ask for /. */
const POINTER = { name: 'islet', docs: '/docs', openapi: '/openapi.json' }

type Page = (incoming: IncomingMessage, outgoing: ServerResponse) => void

export const DOCS_PAGES: [path: string, page: Page][] = [
  ['/', sendPointer],
  ['/docs', sendDocs],
  ['/openapi.json', sendOpenApi],
]

function sendPointer({ headers }: IncomingMessage, outgoing: ServerResponse): void {
  outgoing.setHeader('Vary', 'Accept')
  if (/\btext\/html\b/i.test(headers.accept ?? '')) {
    // Relative, so that a proxy may put the server below a path.
    outgoing.setHeader('Location', 'docs')
    sendText(outgoing, 302, 'text/plain; charset=utf-8', 'The API is documented at /docs.\n')
  } else sendText(outgoing, 200, 'application/json', JSON.stringify(POINTER))
}

let page: string | undefined
function sendDocs(_: IncomingMessage, outgoing: ServerResponse): void {
  page ??= docsPage(openApi())
  outgoing.setHeader('Content-Security-Policy', POLICY)
  outgoing.setHeader('Referrer-Policy', 'no-referrer')
  sendText(outgoing, 200, 'text/html; charset=utf-8', page)
}

let document: string | undefined
function sendOpenApi(_: IncomingMessage, outgoing: ServerResponse): void {
  document ??= JSON.stringify(openApi())
  sendText(outgoing, 200, 'application/json', document)
}

function docsPage(document: OpenApi): string {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  )
  const tags = [...new Set(operations.map(({ operation }) => operation.tags[0]!))]
  const sections = tags.map((tag) => {
    const own = operations.filter(({ operation }) => operation.tags[0] === tag)
    return `<h2>${escapeHtml(tag)}</h2>${own.map(({ path, method, operation }) => card(path, method, operation)).join('')}`
  })
  const types = Object.entries(document.components.schemas).map(
    ([name, schema]) =>
      `<details id="${escapeHtml(name)}"><summary><code>${escapeHtml(name)}</code></summary><div class="in">${pre(schemaText(schema))}</div></details>`,
  )
  return `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Islet API</title><style>${STYLE}</style>
<h1>Islet API</h1><p>${escapeHtml(document.info.description)} Send <code>Authorization: Bearer &lt;key&gt;</code>. The same as a
document: <a href="/openapi.json">/openapi.json</a>.</p>
${sections.join('\n')}
<h2>Types</h2>${types.join('\n')}
</html>
`
}

function card(path: string, method: string, operation: Operation): string {
  const parts: string[] = []
  for (const place of ['query', 'header'] as const) {
    const own = (operation.parameters ?? []).filter((parameter) => parameter.in === place)
    if (own.length === 0) continue
    const properties = Object.fromEntries(own.map(({ name, schema }) => [name, schema]))
    const required = own.filter((parameter) => parameter.required).map(({ name }) => name)
    parts.push(`<h4>${place}</h4>${pre(schemaText({ type: 'object', properties, required }))}`)
  }
  for (const [type, { schema }] of Object.entries(operation.requestBody?.content ?? {})) {
    parts.push(`<h4>body, ${escapeHtml(type)}</h4>${pre(schemaText(schema))}`)
  }
  for (const [status, response] of Object.entries(operation.responses)) {
    const content = (response as { content?: Record<string, { schema: never }> }).content ?? {}
    for (const [type, { schema }] of Object.entries(content)) {
      parts.push(`<h4>${escapeHtml(status)}, ${escapeHtml(type)}</h4>${pre(schemaText(schema))}`)
    }
  }
  const socket = operation['x-websocket']
  if (socket)
    parts.push(
      `<h4>messages</h4>${pre(`server: ${schemaText(socket.server)}\nclient: ${schemaText(socket.client)}`)}`,
    )
  return `<details><summary><span class="method">${method}</span><code>${escapeHtml(path)}</code><span class="what">${escapeHtml(operation.summary)}</span></summary><div class="in">${parts.join('') || '<p>Nothing to send, nothing to read.</p>'}</div></details>`
}

/** Names of types become links to them. */
function pre(text: string): string {
  return `<pre>${escapeHtml(text).replace(/\u00ab(\w+)\u00bb/g, '<a href="#$1">$1</a>')}</pre>`
}
