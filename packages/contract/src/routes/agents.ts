import { LIMITS } from '../limits.ts'
import * as agent from '../schemas/agent.ts'
import { SANDBOX, tagged } from './route.ts'

const AGENT = `${SANDBOX}/agents/{pid}` as const

export const agentRoutes = tagged('agents', {
  startAgent: {
    method: 'POST',
    path: `${SANDBOX}/agents`,
    summary: 'Start an agent session: a process that drives the Claude Agent SDK of the sandbox',
    wakes: true,
    body: agent.startAgent,
    bodyBytes: LIMITS.agentBodyBytes,
    response: agent.agentSession,
    status: 201,
  },
  listAgents: {
    method: 'GET',
    path: `${SANDBOX}/agents`,
    summary: 'List agent sessions, newest first',
    query: agent.listAgents,
    response: agent.agentList,
  },
  getAgent: {
    method: 'GET',
    path: AGENT,
    summary: 'Get one agent session',
    response: agent.agentSession,
  },
  promptAgent: {
    method: 'POST',
    path: `${AGENT}/prompt`,
    summary: 'Send a prompt; it runs after the prompts before it',
    wakes: true,
    body: agent.promptAgent,
    bodyBytes: LIMITS.agentBodyBytes,
    response: null,
  },
  interruptAgent: {
    method: 'POST',
    path: `${AGENT}/interrupt`,
    summary: 'Interrupt the current turn',
    wakes: true,
    response: null,
  },
  configureAgent: {
    method: 'POST',
    path: `${AGENT}/configure`,
    summary: 'Change the configuration from the next turn on',
    wakes: true,
    body: agent.configureAgent,
    bodyBytes: LIMITS.agentBodyBytes,
    response: null,
  },
})
