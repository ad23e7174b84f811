// JSON Schema of the contract's schemas, with the exported objects under their own names.
import * as contract from '@islet/contract'
import { z } from 'zod'

export type JsonSchema = Record<string, unknown> & { $ref?: string }
type Io = 'input' | 'output'

export interface Components {
  /** The schema, or a reference to it when it has a name. */
  add(schema: z.ZodType, io: Io): JsonSchema
  all(): Record<string, JsonSchema>
}

/** A query is spelled out as parameters, so it needs no name. */
const QUERIES = new Set<unknown>(Object.values<contract.Route>(contract.ROUTES).map(({ query }) => query))
const NAMES = new Map<unknown, string>(
  Object.entries(contract)
    .filter(([, value]) => value instanceof z.ZodObject || value instanceof z.ZodDiscriminatedUnion)
    .filter(([, schema]) => !QUERIES.has(schema))
    .map(([name, schema]) => [schema, name.charAt(0).toUpperCase() + name.slice(1)]),
)
/** Descriptions as the schemas have them, and the names on top: what has an `id` is referred to by it. */
const METADATA = {
  get: (schema: z.ZodType) => ({
    ...z.globalRegistry.get(schema),
    ...(NAMES.has(schema) && { id: NAMES.get(schema) }),
  }),
  has: (schema: z.ZodType) => NAMES.has(schema) || z.globalRegistry.has(schema),
}
/** The name that zod gives to a schema that refers to itself and has no name; only the schema of any JSON value does. */
const UNNAMED = /^__schema\d+$/

export function createComponents(): Components {
  const components: Record<string, JsonSchema> = {}
  return {
    add(schema, io) {
      const {
        $schema: _,
        $defs,
        ...own
      } = z.toJSONSchema(schema, {
        io,
        unrepresentable: 'any',
        metadata: METADATA as never,
      }) as JsonSchema & { $defs?: Record<string, JsonSchema> }
      for (const [name, definition] of Object.entries($defs ?? {})) {
        components[nameOf(name)] = tidy(definition, io) as JsonSchema
      }
      const name = NAMES.get(schema)
      if (name === undefined || own.$ref) return tidy(own, io) as JsonSchema
      components[name] = tidy(own, io) as JsonSchema
      return { $ref: refTo(name) }
    },
    all: () => Object.fromEntries(Object.entries(components).sort(([a], [b]) => (a < b ? -1 : 1))),
  }
}

const nameOf = (name: string): string => (UNNAMED.test(name) ? 'Json' : name)
const refTo = (name: string): string => `#/components/schemas/${nameOf(name)}`

/** References to where OpenAPI keeps things; answers may grow fields; a date says so by its format alone. */
function tidy(value: unknown, io: Io): unknown {
  if (Array.isArray(value)) return value.map((item) => tidy(item, io))
  if (typeof value !== 'object' || value === null) return value
  const isDate = (value as JsonSchema).format === 'date-time'
  const entries = Object.entries(value).flatMap(([key, inner]): [string, unknown][] => {
    if (key === '$ref') return [[key, refTo(String(inner).replace('#/$defs/', ''))]]
    if (key === 'id' && typeof inner === 'string') return []
    if (key === 'additionalProperties' && inner === false && io === 'output') return []
    if (key === 'pattern' && isDate) return []
    return [[key, tidy(inner, io)]]
  })
  return Object.fromEntries(entries)
}
