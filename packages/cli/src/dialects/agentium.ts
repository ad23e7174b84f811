export * from '@islet/dialects/agentium'
