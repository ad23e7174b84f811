export * from '@islet/dialects/computesdk'
