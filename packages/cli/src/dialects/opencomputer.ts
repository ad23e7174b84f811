export * from '@islet/dialects/opencomputer'
