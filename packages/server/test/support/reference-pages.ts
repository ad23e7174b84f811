// docs/reference/errors.md and api.md, printed from the tables. openapi.test.ts keeps them equal.
import { ERRORS, type ErrorSpec, ROUTES, type Route, type RouteName } from '@islet/contract'
import { type Operation, openApi } from '../../src/api/openapi/openapi.ts'
import { schemaText } from '../../src/api/openapi/schema-text.ts'

const HOW = 'UPDATE=1 node --test packages/server/test/api/openapi.test.ts'

export function errorsPage(): string {
  const rows = Object.entries<ErrorSpec>(ERRORS).map(
    ([code, { status, retryable, message, hint }]) =>
      `| \`${code}\` | ${status} | ${retryable ? 'yes' : 'no'} | ${cell(message)} | ${cell(hint ?? '')} |`,
  )
  return `<!-- Printed from packages/contract/src/errors.ts: ${HOW} -->
# Errors

Every error has this body. Branch on \`code\`; the message and the hint are for people and may change.

\`\`\`json
{ "error": { "code": "sandbox_not_found", "message": "There is no such sandbox.", "hint": "islet ls lists them.", "retryable": false } }
\`\`\`

\`details\` is optional: \`issues\`, a list of \`{path, message}\`, if a request was not valid; \`requestId\` if the
server failed. \`retryable\` says whether the same call may succeed later without a change.

A command that ran and failed is a result with its exit code. A command that never ran is an error.

| code | status | retryable | message | hint |
|---|---|---|---|---|
${rows.join('\n')}
`
}

export function apiPage(): string {
  const routes = Object.entries(ROUTES) as [RouteName, Route][]
  const tags = [...new Set(routes.map(([, { tag }]) => tag))]
  const document = openApi()
  const sections = tags.map((tag) => {
    const rows = routes
      .filter(([, route]) => route.tag === tag)
      .map(([, route]) => {
        const operation = document.paths[route.path]![route.method.toLowerCase()]!
        const query = (operation.parameters ?? [])
          .filter((parameter) => parameter.in === 'query')
          .map((parameter) => `\`${parameter.name}${parameter.required ? '' : '?'}\``)
        const method = route.websocket ? 'WebSocket' : route.method
        const body = Object.values(operation.requestBody?.content ?? {}).map(({ schema }) => typeName(schema))
        return `| ${method} | \`${route.path}\` | ${cell(route.summary)} | ${query.join(' ')} | ${body.join('')} | ${answerOf(route, operation)} |`
      })
    return `## ${tag}\n\n| method | path | what it does | query | body | answer |\n|---|---|---|---|---|---|\n${rows.join('\n')}`
  })
  return `<!-- Printed from packages/contract/src/routes.ts: ${HOW} -->
# HTTP API

Send \`Authorization: Bearer <key>\` on every route but \`/health\`, \`/ready\`, \`/openapi.json\`, \`/docs\`, \`/play/\`,
signed URLs and magic links. Bodies are JSON
unless the table says bytes; unknown fields and query keys are refused. The exact shapes are at \`/openapi.json\`, and as a page
at \`/docs\`. Errors: [errors.md](errors.md). Every GET route also answers HEAD. Every answer has an \`X-Request-Id\`: yours, or a new one.

${sections.join('\n\n')}

## A streamed command

\`exec\` and \`run\` with \`stream\` answer with one JSON value per line while the command runs, without a limit; a client that reads slowly slows
the command, and one that disconnects kills it. A command that cannot be started is an ordinary error.

\`\`\`
{"type":"start","sandboxId","processId","autoResumed"}
{"type":"stdout" or "stderr","data"}                     text; a line never ends inside a character
{"type":"stdout" or "stderr","data","encoding":"base64"} bytes that are not UTF-8, or all if encoding is base64
{"type":"exit", exitCode, signal ... as in the result, without stdout and stderr}      or {"type":"error","error"}
\`\`\`

An empty line comes after 15 seconds without output. With \`stdin: true\` the stdin stays open: \`POST …/processes/{pid}/stdin\` writes to it.

## Attaching to a process

Text messages are JSON, binary messages are bytes. From the server, the first byte of a binary message is the channel: 1
stdout or the terminal, 2 stderr. From the client, binary messages are stdin, at most 1 MiB each.

\`\`\`
server: {type:'start'}  output...  {type:'replay-end'}  output...  {type:'exit'}, close 1000
client: stdin bytes   {type:'resize', cols, rows}   {type:'signal', signal}   {type:'stdin-end'}
\`\`\`

Browsers cannot set headers on a WebSocket: they offer the protocols \`islet\` and \`islet.bearer.<key>\`. A failure is
\`{type:'error', error: {code, message}}\` and a close: 1003 not JSON, 1008 an unknown message, 1009 too large, 4000 + the HTTP
status for an error of the caller, 1011 an error of the server, 1001 the server stops (attach again).
`
}

function answerOf({ status }: Route, { responses }: Operation): string {
  const content = (responses[status] as { content?: Record<string, { schema: never }> }).content ?? {}
  const told = status === 200 ? {} : ((responses[200] as { content?: typeof content })?.content ?? {})
  const lines = 'application/x-ndjson'
  const types = Object.entries(content)
    .filter(([type]) => type !== 'text/event-stream')
    .map(([type, { schema }]) => `${typeName(schema)}${type === lines ? ' per line' : ''}`)
  if (told[lines]) types.push(`200 ${typeName(told[lines].schema)} per line`)
  return [status, types.join(', or ')].join(' ').trim()
}

function typeName(schema: Parameters<typeof schemaText>[0]): string {
  const text = schemaText(schema)
  return text.includes('\n') ? 'object' : text.replace(/[«»]/g, '`').replaceAll(' | ', ' or ')
}

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('<', '&lt;')
