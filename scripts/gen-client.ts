// Prints the contract for clients, without zod: plain types, the routes, constants, and the shapes that answers are checked with.
// The schemas stay the source; packages/contract/src/client.test.ts compares the types of both.
import { readdirSync, readFileSync } from 'node:fs'
import { z } from 'zod'
import * as contract from '../packages/contract/src/index.ts'

type Mode = 'input' | 'output'
type Schema = z.core.$ZodType
type AnyDef = Record<string, unknown> & { type: string }

const SCHEMAS = new URL('../packages/contract/src/schemas/', import.meta.url)
/** Messages on sockets and in streams, which no route describes. */
const MESSAGES = [
  'AttachServerMessage',
  'CreateProgress',
  'ExecLine',
  'ImageProgress',
  'RunProgress',
  'SandboxEvent',
  'SandboxToken',
  'SignalMessage',
  'WatcherMessage',
]

const values = contract as unknown as Record<string, unknown>
const named: Record<Mode, Map<Schema, string>> = { input: new Map(), output: new Map() }
const shapes = new Map<string, string>()

export function printClient(): string {
  const declared = readdirSync(SCHEMAS).flatMap((file) =>
    declarations(readFileSync(new URL(file, SCHEMAS), 'utf8')),
  )
  for (const { name, mode, schema } of declared)
    if (schema && !named[mode].has(schema)) named[mode].set(schema, name)
  const types = declared.map(({ name, mode, schema, text }) =>
    schema ? printDeclaration(name, schema, mode) : text!,
  )
  const routes = Object.entries(contract.ROUTES).map(([name, route]) => printRoute(name, route))
  for (const name of MESSAGES) shapeOfNamed(name, schemaNamed(name))
  return [
    '// Printed by npm run gen from the schemas and routes of the contract. Do not edit.',
    '// biome-ignore-all format: printed by a script',
    '// biome-ignore-all lint: printed by a script',
    "import type { Shape } from './shape.ts'",
    '',
    'export type Json = string | number | boolean | null | Json[] | { [key: string]: Json }',
    ...types,
    '',
    ...Object.entries(values).flatMap(printConstant),
    '',
    ...[...shapes].map(([name, text]) => `export const ${shapeName(name)}: Shape = ${text}`),
    '',
    '/** What a call takes and gives, if it is JSON. */',
    'export interface Calls {',
    ...routes.map(({ type }) => type),
    '}',
    '',
    'export const ROUTES = {',
    ...routes.map(({ value }) => value),
    "} as const satisfies Record<keyof Calls, { method: string; path: string; open?: true; response: Shape | 'nothing' }>",
    '',
  ].join('\n')
}

interface Declaration {
  name: string
  mode: Mode
  schema?: Schema
  text?: string
}

/** The exported types of a file, without the types of parsed input, which only the server uses. */
function declarations(source: string): Declaration[] {
  return [...source.matchAll(/^(?:export )?type (\w+) = (.*)$/gm)].flatMap(
    ([text, name, right]): Declaration[] => {
      const from = /^z\.(infer|input|output)<typeof (\w+)>$/.exec(right!)
      if (!from) return [{ name: name!, mode: 'output', text }]
      if (name!.endsWith('Parsed')) return []
      const mode = from[1] === 'input' ? 'input' : 'output'
      return [{ name: name!, mode, schema: values[from[2]!] as Schema }]
    },
  )
}

function schemaNamed(name: string): Schema {
  const found = [...named.output].find(([, one]) => one === name)
  if (!found) throw new Error(`no schema has the type ${name}`)
  return found[0]
}

function printDeclaration(name: string, schema: Schema, mode: Mode): string {
  return `export type ${name} = ${printType(schema, mode, '', true)}`
}

function printRoute(name: string, route: contract.Route): { type: string; value: string } {
  const body = route.body instanceof z.ZodType ? printType(route.body, 'input', '  ') : 'undefined'
  const { response } = route
  const isJson = response instanceof z.ZodType
  return {
    type: `  ${name}: { body: ${body}; response: ${isJson ? printType(response, 'output', '  ') : 'undefined'} }`,
    value: `  ${name}: { method: '${route.method}', path: '${route.path}',${route.open ? ' open: true,' : ''} response: ${isJson ? printShape(response) : "'nothing'"} },`,
  }
}

function printType(schema: Schema, mode: Mode, indent: string, isDeclared = false): string {
  const name = named[mode].get(schema)
  if (name !== undefined && !isDeclared) return name
  if (schema === contract.json) return 'Json'
  const def = defOf(schema)
  const inner = (part: unknown) => printType(part as Schema, mode, indent)
  switch (def.type) {
    case 'string':
    case 'number':
    case 'boolean':
    case 'unknown':
    case 'null':
      return def.type
    case 'literal':
      return (def.values as unknown[]).map((value) => JSON.stringify(value)).join(' | ')
    case 'enum':
      return Object.values(def.entries as object)
        .map((value) => JSON.stringify(value))
        .join(' | ')
    case 'union':
      return [...new Set((def.options as Schema[]).map(inner))].join(' | ')
    case 'nullable':
      return `${inner(def.innerType)} | null`
    case 'array':
      return `(${inner(def.element)})[]`.replace(/^\((\w+)\)\[\]$/, '$1[]')
    case 'record':
      return `Record<string, ${inner(def.valueType)}>`
    case 'object':
      return printFields(def, mode, indent)
    case 'pipe':
      return inner(mode === 'input' && defOf(def.in as Schema).type !== 'transform' ? def.in : def.out)
    case 'optional':
    case 'default':
      return inner(def.innerType)
    default:
      throw new Error(`no plain type for the schema ${def.type}`)
  }
}

function printFields(def: AnyDef, mode: Mode, indent: string): string {
  const lines = Object.entries(def.shape as Record<string, Schema>).flatMap(([key, field]) => {
    const isOptional = isOptionalIn(field, mode)
    const type = printType(field, mode, `${indent}  `)
    const about = (z.globalRegistry.get(field)?.description ?? '').replaceAll('*/', '* /')
    return [
      ...(about ? [`${indent}  /** ${about} */`] : []),
      `${indent}  ${key}${isOptional ? '?' : ''}: ${type}${isOptional ? ' | undefined' : ''}`,
    ]
  })
  if (def.catchall && defOf(def.catchall as Schema).type !== 'never')
    throw new Error('an object with other fields')
  return ['{', ...lines, `${indent}}`].join('\n')
}

/** Shapes describe answers, which have no defaults and no transforms. */
function printShape(schema: Schema): string {
  const name = named.output.get(schema)
  return name === undefined ? shapeText(schema) : shapeOfNamed(name, schema)
}

function shapeOfNamed(name: string, schema: Schema): string {
  if (!shapes.has(name)) {
    const text = shapeText(schema)
    shapes.set(name, text)
  }
  return shapeName(name)
}

function shapeText(schema: Schema): string {
  const def = defOf(schema)
  switch (def.type) {
    case 'string':
    case 'number':
    case 'boolean':
      return `'${def.type}'`
    case 'enum':
      return "'string'" // a newer server may know more of them
    case 'unknown':
      return "'any'"
    case 'null':
      return 'null'
    case 'literal':
      return `{ is: ${JSON.stringify((def.values as unknown[])[0])} }`
    case 'union':
      return `{ either: [${(def.options as Schema[]).map(printShape).join(', ')}] }`
    case 'nullable':
      return `{ either: [null, ${printShape(def.innerType as Schema)}] }`
    case 'optional':
      return `{ optional: ${printShape(def.innerType as Schema)} }`
    case 'array':
      return `{ list: ${printShape(def.element as Schema)} }`
    case 'record':
      return `{ map: ${printShape(def.valueType as Schema)} }`
    case 'object': {
      const fields = Object.entries(def.shape as Record<string, Schema>)
      return `{ fields: { ${fields.map(([key, field]) => `${key}: ${printShape(field)}`).join(', ')} } }`
    }
    default:
      throw new Error(`no shape for the schema ${def.type}`)
  }
}

function printConstant([name, value]: [string, unknown]): string[] {
  if (!/^[A-Z][A-Z_]+$/.test(name) || !constantNames().has(name)) return []
  const text = value instanceof RegExp ? String(value) : `${JSON.stringify(value)} as const`
  return [`export const ${name} = ${text}`]
}

/** Constants in schema files; the other files of the contract have no zod, and clients import them directly. */
function constantNames(): Set<string> {
  const sources = readdirSync(SCHEMAS).map((file) => readFileSync(new URL(file, SCHEMAS), 'utf8'))
  return new Set(
    sources.flatMap((text) => [...text.matchAll(/^export const ([A-Z_]+) =/gm)].map(([, name]) => name!)),
  )
}

function isOptionalIn(schema: Schema, mode: Mode): boolean {
  const { type } = defOf(schema)
  return type === 'optional' || (type === 'default' && mode === 'input')
}

function defOf(schema: Schema): AnyDef {
  return schema._zod.def as unknown as AnyDef
}

function shapeName(name: string): string {
  return `${name[0]!.toLowerCase()}${name.slice(1)}Shape`
}
