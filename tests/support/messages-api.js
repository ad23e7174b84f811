// A model for agents in tests, inside the sandbox: what it answers depends on the last prompt.
//
//   say TEXT          answers TEXT
//   call TOOL JSON    uses that tool once, then answers "result: " and what the tool gave
//   loop              uses a tool again and again
//   hang              begins an answer that does not end
//   history           answers with the prompts of the conversation, as JSON
//   request           answers with what it knows of the request, as JSON
import { createServer } from 'node:http'

const server = createServer(async (incoming, outgoing) => {
  let body = ''
  for await (const chunk of incoming.setEncoding('utf8')) body += chunk
  if (incoming.method !== 'POST' || !incoming.url.startsWith('/v1/messages'))
    return outgoing.writeHead(404).end()
  const request = JSON.parse(body)
  outgoing.writeHead(200, { 'content-type': 'text/event-stream' })
  answer(request, incoming.headers, (event) =>
    outgoing.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`),
  )
  if (wordOf(request) !== 'hang') outgoing.end()
})
server.listen(Number(process.argv[2]), '127.0.0.1', () => console.log('listening'))

function answer(request, headers, send) {
  const usage = { input_tokens: 1, output_tokens: 1 }
  const { model } = request
  const message = {
    id: `msg_${crypto.randomUUID()}`,
    type: 'message',
    role: 'assistant',
    model,
    content: [],
    usage,
  }
  send({ type: 'message_start', message: { ...message, stop_reason: null, stop_sequence: null } })
  const block = blockFor(request, headers)
  const isTool = block.type === 'tool_use'
  const start = isTool ? { ...block, input: {} } : { type: 'text', text: '' }
  send({ type: 'content_block_start', index: 0, content_block: start })
  const delta = isTool
    ? { type: 'input_json_delta', partial_json: JSON.stringify(block.input) }
    : { type: 'text_delta', text: block.text }
  send({ type: 'content_block_delta', index: 0, delta })
  if (wordOf(request) === 'hang') return
  send({ type: 'content_block_stop', index: 0 })
  const stop_reason = isTool ? 'tool_use' : 'end_turn'
  send({ type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage })
  send({ type: 'message_stop' })
}

function blockFor(request, headers) {
  const [word, ...rest] = promptsOf(request).at(-1).split(' ')
  const text = (text) => ({ type: 'text', text })
  const tool = (name, input) => ({ type: 'tool_use', id: `toolu_${crypto.randomUUID()}`, name, input })
  const result = resultOf(request)
  if (word === 'loop') return tool('Bash', { command: 'true', description: 'nothing' })
  if (word === 'call' && result === undefined) return tool(rest[0], JSON.parse(rest.slice(1).join(' ')))
  if (word === 'call') return text(`result: ${result}`)
  if (word === 'history') return text(JSON.stringify(promptsOf(request)))
  if (word === 'request') return text(JSON.stringify(aboutIt(request, headers)))
  return text(rest.join(' '))
}

const wordOf = (request) => promptsOf(request).at(-1).split(' ')[0]

/** What the user wrote, without what Claude Code adds. */
function promptsOf(request) {
  return userBlocks(request).flatMap((blocks) => blocks.findLast(({ type }) => type === 'text')?.text ?? [])
}

/** What the tool gave, if its result is the last that the model was told. */
function resultOf(request) {
  const last = userBlocks(request).at(-1).at(-1)
  return last.type === 'tool_result'
    ? blocksOf(last)
        .map(({ text }) => text)
        .join('')
    : undefined
}

function userBlocks({ messages }) {
  const isReminder = ({ type, text }) => type === 'text' && text.startsWith('<system-reminder>')
  const users = messages.filter(({ role }) => role === 'user')
  return users.map((message) => blocksOf(message).filter((block) => !isReminder(block)))
}

const blocksOf = ({ content }) => (typeof content === 'string' ? [{ type: 'text', text: content }] : content)

function aboutIt({ model, system, tools }, headers) {
  const prompt = typeof system === 'string' ? system : system?.map(({ text }) => text).join('\n')
  return {
    model,
    key: headers['x-api-key'] ?? headers.authorization,
    tools: (tools ?? []).map(({ name }) => name),
    system: prompt?.slice(-200),
  }
}
