// Prints the TypeScript tables from the C message tables, and the contract for clients. `npm run gen` writes them, `--check`
// fails when one is stale.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { printClient } from './gen-client.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const tables = [
  { from: 'native/guest/message.def', to: 'packages/server/src/guest/messages.gen.ts' },
  { from: 'native/warden/message.def', to: 'packages/server/src/warden/messages.gen.ts' },
]

interface Field {
  owner: string
  tag: number
  name: string
  kind: string
  list: boolean
}

let stale = false
const printed = tables.map(({ from, to }) => ({
  to,
  text: printTable(from, readFileSync(root + from, 'utf8')),
}))
printed.push({ to: 'packages/contract/src/client.gen.ts', text: printClient() })
for (const { to, text } of printed) {
  if (!process.argv.includes('--check')) writeFileSync(root + to, text)
  else if (readFileSync(root + to, 'utf8') !== text) {
    console.error(`${to} is stale: run npm run gen`)
    stale = true
  }
}
process.exitCode = stale ? 1 : 0

function printTable(from: string, source: string): string {
  const body = source.replace(/\/\*[\s\S]*?\*\//g, '')
  const rows = (macro: string) =>
    [...body.matchAll(new RegExp(`^${macro}\\((.*)\\)\\s*$`, 'gm'))].map((match) =>
      match[1]!.split(',').map((part) => part.trim()),
    )
  const constants = rows('CONSTANT').map(([name, value]) => ({ name: name!, value: value! }))
  const messages = rows('MESSAGE').map(([name, code, sender, payload]) => ({
    name: name!,
    code: Number(code),
    sender: sender!,
    payload: payload!,
  }))
  const records = rows('RECORD').map(([name]) => name!)
  const kinds = rows('ERROR_KIND').map(([name, code]) => ({ name: name!, code: Number(code) }))
  const fields = rows('FIELD').map(parseField)
  const recordFields = rows('RFIELD').map(parseField)
  assertUnique(
    from,
    messages.map((message) => message.code),
  )
  assertUnique(
    from,
    kinds.map((kind) => kind.code),
  )

  const lines = [
    `// Printed by npm run gen from ${from}. Do not edit.`,
    '// biome-ignore-all format: printed by a script',
    "import type { FieldTable } from '../wire/fields.ts'",
    '',
    ...constants.map(({ name, value }) => `export const ${name} = ${value}`),
    '',
    'export const MESSAGE = {',
    ...messages.map(({ name, code }) => `  ${name}: ${code},`),
    '} as const',
    '',
    'export type MessageName = keyof typeof MESSAGE',
    '',
    '/** Who may send a message. */',
    'export const SENDER = {',
    ...messages.map(({ name, sender }) => `  ${name}: '${sender.toLowerCase()}',`),
    '} as const',
    '',
  ]
  for (const name of orderRecords(records, recordFields)) {
    const own = recordFields.filter((field) => field.owner === name)
    lines.push(printInterface(`${pascal(name)}Record`, own), '')
    lines.push(`const ${name}_RECORD: FieldTable = [`, ...own.map(printSpec), ']', '')
  }
  for (const { name, payload } of messages) {
    if (payload !== 'FIELDS') continue
    lines.push(
      printInterface(
        `${pascal(name)}Fields`,
        fields.filter((field) => field.owner === name),
      ),
      '',
    )
  }
  lines.push('/** The fields of each message; null where the payload is raw bytes. */')
  lines.push('export const FIELDS: Record<MessageName, FieldTable | null> = {')
  for (const { name, payload } of messages) {
    const own = fields.filter((field) => field.owner === name)
    if (payload === 'RAW') lines.push(`  ${name}: null,`)
    else if (own.length === 0) lines.push(`  ${name}: [],`)
    else lines.push(`  ${name}: [`, ...own.map((field) => `  ${printSpec(field)}`), '  ],')
  }
  lines.push('}', '', 'export interface FieldsOf {')
  for (const { name, payload } of messages) {
    lines.push(`  ${name}: ${payload === 'RAW' ? 'never' : `${pascal(name)}Fields`}`)
  }
  lines.push('}', '', 'export const ERROR_KIND = {')
  lines.push(...kinds.map(({ name, code }) => `  ${name}: ${code},`), '} as const', '')
  lines.push('export type ErrorKind = keyof typeof ERROR_KIND', '')
  return lines.join('\n')
}

function parseField([owner, tag, name, kind]: string[]): Field {
  const list = /^LIST\((.*)\)$/.exec(kind!)
  return {
    owner: owner!,
    tag: Number(tag),
    name: camel(name!),
    kind: list ? list[1]! : kind!,
    list: list !== null,
  }
}

/** A record comes after the records that it contains. */
function orderRecords(records: string[], fields: Field[]): string[] {
  const done: string[] = []
  const visit = (name: string): void => {
    if (done.includes(name)) return
    for (const field of fields) if (field.owner === name && recordOf(field)) visit(recordOf(field)!)
    done.push(name)
  }
  records.forEach(visit)
  return done
}

function recordOf(field: Field): string | undefined {
  return /^REC\((.*)\)$/.exec(field.kind)?.[1]
}

function printSpec(field: Field): string {
  const record = recordOf(field)
  const kind = record ? `${record}_RECORD` : `'${field.kind.toLowerCase()}'`
  return `  { tag: ${field.tag}, name: '${field.name}', kind: ${kind}${field.list ? ', list: true' : ''} },`
}

function printInterface(name: string, fields: Field[]): string {
  if (fields.length === 0) return `export type ${name} = Record<never, never>`
  return [
    `export type ${name} = {`,
    ...fields.map((field) => `  ${field.name}?: ${tsType(field)}`),
    '}',
  ].join('\n')
}

function tsType(field: Field): string {
  const record = recordOf(field)
  const scalar = { U32: 'number', U64: 'number', STR: 'string', BYTES: 'Uint8Array' }[field.kind]
  const type = record ? `${pascal(record)}Record` : scalar
  if (!type) throw new Error(`${field.owner}.${field.name}: unknown kind ${field.kind}`)
  return field.list ? `${type}[]` : type
}

function assertUnique(from: string, codes: number[]): void {
  if (new Set(codes).size !== codes.length) throw new Error(`${from}: a code is used twice`)
}

function camel(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

function pascal(name: string): string {
  const lower = camel(name.toLowerCase())
  return lower[0]!.toUpperCase() + lower.slice(1)
}
