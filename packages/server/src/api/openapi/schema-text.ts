import type { JsonSchema } from './schema.ts'

/** A JSON Schema the way TypeScript would write the type; references stand in «guillemets». */
export function schemaText(schema: JsonSchema, indent = ''): string {
  if (schema.$ref) return `«${schema.$ref.split('/').at(-1)}»`
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (Array.isArray(schema.enum)) return schema.enum.map((value) => JSON.stringify(value)).join(' | ')
  const alternatives = (schema.anyOf ?? schema.oneOf) as JsonSchema[] | undefined
  if (alternatives) return [...new Set(alternatives.map((one) => schemaText(one, indent)))].join(' | ')
  if (Array.isArray(schema.type)) return schema.type.join(' | ')
  if (schema.type === 'array') return `Array<${schemaText((schema.items ?? {}) as JsonSchema, indent)}>`
  if (schema.type === 'object') return objectText(schema, indent)
  if (schema.format === 'binary') return 'bytes'
  return typeof schema.type === 'string' ? schema.type : 'any JSON'
}

function objectText(schema: JsonSchema, indent: string): string {
  const properties = Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>)
  if (properties.length === 0) {
    const values = schema.additionalProperties
    return typeof values === 'object' ? `Record<string, ${schemaText(values as JsonSchema, indent)}>` : '{}'
  }
  const required = (schema.required ?? []) as string[]
  const lines = properties.map(([name, inner]) => {
    const mark = required.includes(name) ? '' : '?'
    const comment = typeof inner.description === 'string' ? `  // ${inner.description}` : ''
    return `${indent}  ${name}${mark}: ${schemaText(inner, `${indent}  `)}${comment}`
  })
  return `{\n${lines.join('\n')}\n${indent}}`
}
