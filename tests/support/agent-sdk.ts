// Stands in for the vendor's Agent SDK where its package is not what is tested: tests/e2e/agents.test.ts uses the real one.
import type { Sandbox } from 'islet'

/** Answers each prompt with its options, or waits for an interrupt. */
const AGENT_SDK = `
export function query({ prompt, options }) {
  const session_id = options.resume ?? 'a-conversation'
  let stop = () => {}
  const messages = (async function* () {
    for await (const { message } of prompt) {
      const { model, maxTurns, permissionMode, cwd, mcpServers, allowedTools, systemPrompt } = options
      yield { type: 'system', subtype: 'init', session_id, model, maxTurns, permissionMode, cwd, mcpServers, allowedTools, systemPrompt }
      if (message.content === 'complain') options.stderr('a complaint\\n')
      if (message.content === 'wait') await new Promise((resolve) => { stop = resolve })
      yield { type: 'result', subtype: 'success', session_id, result: message.content }
    }
  })()
  return Object.assign(messages, { interrupt: async () => stop(), close: () => process.exit(3) })
}
`

/** For agents whose working directory is `directory`. */
export async function writeAgentSdk(
  files: Pick<Sandbox['files'], 'write'>,
  directory: string,
): Promise<void> {
  const place = `${directory}/node_modules/@anthropic-ai/claude-agent-sdk`
  await files.write(`${place}/package.json`, '{ "type": "module", "exports": "./index.js" }')
  await files.write(`${place}/index.js`, AGENT_SDK)
}
