// Checks docs/coming-from/agentium.md row by row. The backend of this machine needs no server.
import assert from 'node:assert/strict'
import { SandboxAgent } from '@islet/dialects/agentium'
import { ownWorkspaces, started } from '../support/workspaces.ts'
import { testRows } from './rows.ts'

ownWorkspaces()

testRows('agentium.md', {
  'new SandboxAgent(config)': async () => {
    assert.equal(new SandboxAgent().ready, false)
    assert.equal(new SandboxAgent({ backend: 'docker', dockerImage: 'node:20-alpine' }).kind, 'sandbox-agent')
  },
  'agent.start()': async () => {
    await using agent = await started({ workspace: { files: [{ path: 'a', contents: 'b' }] } })
    assert.equal(await agent.readFile('a'), 'b')
  },
  'agent.run(code, options)': async () => {
    await using agent = await started()
    const options = { language: 'python', timeoutSeconds: 20, env: { A: 'a' } } as const
    assert.equal((await agent.run('import os\nprint(os.environ["A"])', options)).stdout, 'a\n')
  },
  'agent.shell(command, options)': async () => {
    await using agent = await started()
    assert.equal((await agent.shell('exit 7')).exitCode, 7)
  },
  'agent.writeFile(path, contents, encoding)': async () => {
    await using agent = await started()
    await agent.writeFile('a/b', 'aGk=', 'base64')
    assert.equal((await agent.shell('cat a/b')).output, 'hi')
  },
  'agent.readFile(path, encoding)': async () => {
    await using agent = await started()
    assert.equal(await agent.readFile('none'), null)
  },
  'agent.snapshot()': async () => {
    await using agent = await started({ workspace: { files: [{ path: 'a', contents: 'hi' }] } })
    const [file] = (await agent.snapshot()).files
    assert.deepEqual([file!.path, file!.contents, file!.encoding], ['a', 'aGk=', 'base64'])
  },
  'agent.resume(snapshot)': async () => {
    await using agent = new SandboxAgent()
    await agent.resume({ takenAt: 0, files: [{ path: 'a', contents: 'aGk=', encoding: 'base64' }], env: {} })
    assert.deepEqual([agent.ready, await agent.readFile('a')], [true, 'hi'])
  },
  'agent.close()': async () => {
    const agent = await started()
    await agent.close()
    await agent.close()
  },
  'agent.ready': async () => {
    await using agent = await started()
    assert.equal(agent.ready, true)
  },
  'agent.kind': async () => {
    assert.equal(new SandboxAgent().kind, 'sandbox-agent')
  },
})
