export * from '@islet/dialects/hono'
