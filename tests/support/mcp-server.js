// An MCP server on stdin and stdout with one tool, which tells a variable of its environment.
import { createInterface } from 'node:readline'

const tool = {
  name: 'token',
  description: 'Tells the token.',
  inputSchema: { type: 'object', properties: { before: { type: 'string' } } },
}
const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'notes', version: '1.0.0' },
  }),
  'tools/list': () => ({ tools: [tool] }),
  'tools/call': ({ arguments: { before } }) => ({
    content: [{ type: 'text', text: `${before} ${process.env.NOTES_TOKEN}` }],
  }),
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line)
  if (id === undefined) continue
  const result = answers[method]?.(params) ?? {}
  console.log(JSON.stringify({ jsonrpc: '2.0', id, result }))
}
