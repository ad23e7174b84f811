export * from '@islet/sdk'
