import assert from 'node:assert/strict'
import type { AgentEvent, AgentSession, AgentStartOpts, McpServerConfig } from 'islet/opencomputer'
import { until } from '../../coming-from/until.ts'
import { writeAgentSdk } from '../../support/agent-sdk.ts'
import type { Programs } from '../seeds.ts'
import type { World } from './world.ts'

const HOME = '/tmp/agent'

export function agentPrograms({ sandbox, islet }: World): Programs {
  const { agent } = sandbox
  let first: AgentSession
  const listening = () => {
    const [events, errors, exits]: [AgentEvent[], string[], number[]] = [[], [], []]
    let isLive = false
    const handlers = {
      onEvent: (event: AgentEvent) => void events.push(event),
      onError: (data: string) => void errors.push(data),
      onExit: (exitCode: number) => void exits.push(exitCode),
      onScrollbackEnd: () => {
        isLive = true
      },
    }
    const saw = (type: string, result?: string) =>
      until(() =>
        events.some((event) => event.type === type && (result === undefined || event.result === result)),
      )
    return { events, errors, exits, handlers, saw, isLive: () => isLive }
  }

  return {
    'an agent starts with a prompt and its configuration, and reports events, errors and its end':
      async () => {
        await writeAgentSdk(islet.sandboxes.handle(sandbox.sandboxId).files, HOME)
        const docs: McpServerConfig = { command: 'docs', args: ['--stdio'], env: { A: '1' } }
        const config = {
          model: 'a-model',
          systemPrompt: 'You are brief.',
          allowedTools: ['Bash'],
          permissionMode: 'acceptEdits',
          maxTurns: 3,
          cwd: HOME,
          mcpServers: { docs },
          resume: 'an-older-conversation',
        } satisfies AgentStartOpts
        const heard = listening()
        first = await agent.start({ prompt: 'complain', ...config, ...heard.handlers })
        await heard.saw('turn_complete')
        const begun = heard.events.find(({ type }) => type === 'system')!
        for (const name of ['model', 'maxTurns', 'cwd', 'mcpServers', 'allowedTools'] as const)
          assert.deepEqual(begun[name], config[name], name)
        assert.equal(begun.session_id, 'an-older-conversation')
        assert.equal(heard.errors.join(''), 'a complaint\n')
        assert.equal(heard.isLive(), true)
        const short = listening()
        const other = await agent.start({ cwd: HOME, ...short.handlers })
        other.sendPrompt('hello')
        await short.saw('result', 'hello')
        assert.equal(short.events.find(({ type }) => type === 'system')?.maxTurns, 50)
        await other.kill()
        assert.equal(await other.done, 128 + 9)
        assert.deepEqual(short.exits, [128 + 9])
      },
    'an agent session is attached to by its id, with what was reported before, and listed': async () => {
      const heard = listening()
      const again = await agent.attach(first.sessionId, heard.handlers)
      await heard.saw('turn_complete')
      await until(heard.isLive)
      again.sendPrompt('from another client')
      await heard.saw('result', 'from another client')
      const info = (await agent.list()).find(({ sessionID }) => sessionID === first.sessionId)
      assert.deepEqual([info?.running, info?.sandboxID], [true, sandbox.sandboxId])
      assert.ok(Date.parse(info!.startedAt) > 0)
      again.close()
      await assert.rejects(agent.attach('prc-00000000000000000000'), { code: 'process_not_found' })
    },
    'a session takes prompts, an interrupt and a configuration, is closed and is killed': async () => {
      const heard = listening()
      const session = await agent.attach(first.sessionId, heard.handlers)
      assert.equal(session.sessionId, first.sessionId)
      session.sendPrompt('wait')
      await until(() => heard.events.filter(({ type }) => type === 'system').length === 3)
      session.interrupt()
      await heard.saw('interrupted')
      session.configure({ model: 'another-model' })
      await heard.saw('configured')
      session.sendPrompt('with it')
      await heard.saw('result', 'with it')
      assert.equal(heard.events.findLast(({ type }) => type === 'system')?.model, 'another-model')
      session.close()
      assert.deepEqual([await session.done, heard.exits], [-1, [-1]])
      await first.kill(15)
      assert.notEqual(await first.done, 0)
    },
  }
}
