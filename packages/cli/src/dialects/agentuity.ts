export * from '@islet/dialects/agentuity'
