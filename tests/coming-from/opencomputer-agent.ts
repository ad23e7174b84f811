// The rows for agents. The vendor's package inside is a stand-in: tests/e2e/agents.test.ts uses the real one.
import assert from 'node:assert/strict'
import type { AgentEvent, Sandbox } from 'islet'
import { writeAgentSdk } from '../support/agent-sdk.ts'
import type { Rows } from './rows.ts'
import { until } from './until.ts'

export function agentRows(sandbox: Sandbox): Rows {
  const { exec, files } = sandbox
  return {
    'sandbox.agent.start(opts)': async () => {
      await writeAgentSdk(files, '/tmp/agent')
      const begun = await agentSaying(sandbox, 'hello')
      assert.equal(begun.answer, 'hello')
      await begun.session.kill()
    },
    'sandbox.agent.attach(sessionId, opts)': async () => {
      const { session } = await agentSaying(sandbox, 'first')
      const events: unknown[] = []
      const again = await sandbox.agent.attach(session.sessionId, {
        onEvent: ({ result }) => void events.push(result),
      })
      await until(() => events.includes('first'))
      again.close()
      await session.kill()
    },
    'sandbox.agent.list()': async () => {
      await until(async () => (await sandbox.agent.list()).every(({ running }) => !running))
      assert.equal((await sandbox.agent.list()).length, 2)
    },
    'agentSession.sessionId': async () => {
      const { session } = await agentSaying(sandbox, 'x')
      assert.match(session.sessionId, /^prc-/)
      await session.kill()
    },
    'agentSession.done': async () => {
      const { session } = await agentSaying(sandbox, 'x')
      await session.kill('SIGKILL')
      assert.equal(await session.done, 137)
    },
    'agentSession.sendPrompt(text)': async () => {
      const { session, answers } = await agentSaying(sandbox, 'one')
      await session.sendPrompt('two')
      await until(() => answers.includes('two'))
      await session.kill()
    },
    'agentSession.interrupt()': async () => {
      const { session, types } = await agentSaying(sandbox, 'one')
      await session.sendPrompt('wait')
      await until(() => types.filter((type) => type === 'system').length === 2)
      await session.interrupt()
      await until(() => types.includes('interrupted'))
      await session.kill()
    },
    'agentSession.configure(config)': async () => {
      const { session, types } = await agentSaying(sandbox, 'one')
      await session.configure({ model: 'another' })
      await until(() => types.includes('configured'))
      await session.kill()
    },
    'agentSession.kill(signal)': async () => {
      const { session } = await agentSaying(sandbox, 'one')
      await session.kill('SIGTERM')
      assert.notEqual(await session.done, 0)
    },
    'agentSession.close()': async () => {
      const { session } = await agentSaying(sandbox, 'one')
      session.close()
      await assert.rejects(session.done, { name: 'AbortError' })
      const info = await sandbox.agent.get(session.sessionId)
      assert.equal(info.running, true)
      await exec.kill(session.sessionId)
    },
  }
}

/** An agent that has answered its first prompt. */
async function agentSaying(sandbox: Sandbox, prompt: string) {
  const [answers, types]: [unknown[], string[]] = [[], []]
  const onEvent = ({ type, result }: AgentEvent) => {
    types.push(type)
    if (type === 'result') answers.push(result)
  }
  const session = await sandbox.agent.start({ prompt, cwd: '/tmp/agent', onEvent })
  await until(() => answers.length > 0)
  return { session, answers, types, answer: answers[0] }
}
