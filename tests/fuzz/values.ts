// Values for a schema of the contract: right ones, and ones that are wrong in a way that programs trip over.
import { z } from 'zod'
import type { Random } from './fuzz.ts'

interface JsonSchema {
  type?: string
  const?: unknown
  enum?: unknown[]
  anyOf?: JsonSchema[]
  oneOf?: JsonSchema[]
  allOf?: JsonSchema[]
  properties?: Record<string, JsonSchema>
  required?: string[]
  additionalProperties?: JsonSchema | boolean
  items?: JsonSchema
  minimum?: number
  maximum?: number
}

/** Text that is worth something to a field of that name. */
const KNOWN: Record<string, readonly unknown[]> = {
  command: ['true', 'echo hi', ['true'], ['sh', '-c', 'exit 3'], 'cat', 'no-such-program'],
  code: ['1', 'print(1)', 'console.log(1)'],
  path: ['a', '/tmp/a', 'a/b', '.', '/', '/proc/self/mem', '/dev/null', '../../etc/passwd'],
  cwd: ['/tmp', '/'],
  from: ['a', '/tmp'],
  to: ['b', '/tmp/b'],
  timeout: [100, '1s', '50ms'],
  env: [{}, { A: '1' }],
  key: ['k', 'a/b', '..', '.'],
  name: ['n', 'x-1'],
  port: [1, 3000, 65_535],
  user: ['root', 'user', '0'],
  signal: ['TERM', 'KILL', 9],
  // No name that an installer would look for in a registry.
  dependencies: [[], ['-y']],
  packages: [[], ['../x']],
  pip: [[], ['-r x']],
}

const WRONG: readonly unknown[] = [
  ...[
    null,
    true,
    0,
    -1,
    1.5,
    1e308,
    2 ** 53,
    -(2 ** 63),
    '',
    ' ',
    '\0',
    'a\0b',
    '\ud800',
    '__proto__',
    '../..',
    '/',
  ],
  ...[[], {}, [[]], { __proto__: 1 }, [null], 'x'.repeat(5000), { constructor: { prototype: { a: 1 } } }],
]

const known = new WeakMap<z.ZodType, JsonSchema>()

export function schemaOf(schema: z.ZodType): JsonSchema {
  let json = known.get(schema)
  if (!json) {
    json = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as JsonSchema
    known.set(schema, json)
  }
  return json
}

export function valueFor(schema: JsonSchema, random: Random, name = ''): unknown {
  if (schema.const !== undefined) return schema.const
  if (schema.enum) return random.pick(schema.enum)
  const branches = schema.anyOf ?? schema.oneOf
  if (branches) return valueFor(random.pick(branches), random, name)
  if (schema.allOf) return Object.assign({}, ...schema.allOf.map((part) => valueFor(part, random, name)))
  if (name in KNOWN && random.chance(0.9)) return random.pick(KNOWN[name]!)
  switch (schema.type) {
    case 'object':
      return objectFor(schema, random)
    case 'array':
      return Array.from({ length: random.below(4) }, () => valueFor(schema.items ?? {}, random, name))
    case 'integer':
    case 'number':
      return Math.max(schema.minimum ?? 0, Math.min(schema.maximum ?? 1000, random.below(2000)))
    case 'boolean':
      return random.chance(0.5)
    default:
      return random.pick(['a', 'b', '1', '1s', '1Mi', 'host', random.text()])
  }
}

/** In one or two places something else than the schema wants. */
export function mutated(value: unknown, random: Random, depth = 0): unknown {
  const isThis = random.chance(depth === 0 ? 0.1 : 0.4)
  if (!isThis && Array.isArray(value) && value.length > 0) {
    const at = random.below(value.length)
    return value.map((item, index) => (index === at ? mutated(item, random, depth + 1) : item))
  }
  if (!isThis && typeof value === 'object' && value !== null)
    return mutatedObject({ ...value }, random, depth)
  if (typeof value === 'string' && random.chance(0.5)) return value + random.text(6)
  return random.chance(0.3) ? random.text() : random.pick(WRONG)
}

/** As JSON, which can say what no value can: a key twice, `__proto__`, numbers of any size, a thousand levels. */
export function jsonOf(value: unknown, random: Random): string {
  const text = JSON.stringify(value) ?? 'null'
  if (random.chance(0.85)) return text
  return random.pick([
    () => `${'['.repeat(20_000)}${']'.repeat(20_000)}`,
    () => text.replace(/^\{/, '{"__proto__":{"isAdmin":true},'),
    () => text.replace(/^\{("[^"]*":)/, '{$1null,$1'),
    () => text.replace(/\d+/, '1e400'),
    () => text.slice(0, random.below(text.length + 1)),
    () => `\ufeff${text}`,
    () => random.bytes(Buffer.from(text)).toString('latin1'),
  ])()
}

function objectFor(schema: JsonSchema, random: Random): Record<string, unknown> {
  const object: Record<string, unknown> = {}
  for (const [name, inner] of Object.entries(schema.properties ?? {})) {
    if (schema.required?.includes(name) || random.chance(0.4)) object[name] = valueFor(inner, random, name)
  }
  if (typeof schema.additionalProperties === 'object') {
    for (let n = random.below(3); n > 0; n--)
      object[random.text(3)] = valueFor(schema.additionalProperties, random)
  }
  return object
}

function mutatedObject(object: Record<string, unknown>, random: Random, depth: number): unknown {
  const names = Object.keys(object)
  if (names.length === 0 || random.chance(0.2)) {
    Object.defineProperty(object, random.pick(['__proto__', 'constructor', 'extra', '', '\0', '0']), {
      value: random.pick(WRONG),
      enumerable: true,
    })
    return object
  }
  const name = random.pick(names)
  if (random.chance(0.15)) delete object[name]
  else object[name] = mutated(object[name], random, depth + 1)
  return object
}
