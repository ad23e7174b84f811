// The OpenAPI document, printed from the route table, the schemas and the error table.
import {
  AUTO_RESUMED,
  attachClientMessage,
  attachServerMessage,
  ERRORS,
  imageProgress,
  ROUTES,
  type Route,
  type RouteName,
} from '@islet/contract'
import { type Components, createComponents, type JsonSchema } from './schema.ts'

export interface Operation {
  operationId: string
  summary: string
  tags: string[]
  parameters?: { name: string; in: 'path' | 'query' | 'header'; required: boolean; schema: JsonSchema }[]
  requestBody?: { required: boolean; content: Record<string, { schema: JsonSchema }> }
  responses: Record<string, unknown>
  security?: unknown[]
  'x-websocket'?: { server: JsonSchema; client: JsonSchema }
}

export interface OpenApi {
  openapi: string
  info: { title: string; version: string; description: string }
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, JsonSchema>; securitySchemes: unknown; responses: unknown }
  security: unknown[]
}

const API_VERSION = 'v1'
const BINARY: JsonSchema = { type: 'string', format: 'binary' }
const EVENT_STREAM: JsonSchema = {
  type: 'string',
  description: 'Frames of `id`, `event` (the type) and `data` (one event as JSON); comments keep it alive.',
}
const WOKEN = {
  [AUTO_RESUMED]: {
    description: 'true: the sandbox was suspended and was woken for this call.',
    schema: { type: 'string', enum: ['true'] },
  },
}
const ERROR_SCHEMA: JsonSchema = {
  type: 'object',
  required: ['error'],
  properties: {
    error: {
      type: 'object',
      required: ['code', 'message', 'retryable'],
      properties: {
        code: { type: 'string', enum: Object.keys(ERRORS) },
        message: { type: 'string' },
        hint: { type: 'string', description: 'What to do about it.' },
        retryable: { type: 'boolean', description: 'The same call may succeed later without a change.' },
        details: { type: 'object' },
      },
    },
  },
}

export function openApi(): OpenApi {
  const components = createComponents()
  const paths: OpenApi['paths'] = {}
  for (const [name, route] of Object.entries(ROUTES) as [RouteName, Route][]) {
    paths[route.path] ??= {}
    paths[route.path]![route.method.toLowerCase()] = operation(name, route, components)
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Islet',
      version: API_VERSION,
      description: 'Every AI agent its own Linux computer. Errors are branched on by their code.',
    },
    security: [{ key: [] }],
    paths,
    components: {
      schemas: { ...components.all(), Error: ERROR_SCHEMA },
      responses: {
        Error: {
          description: 'An error of the table.',
          content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
        },
      },
      securitySchemes: { key: { type: 'http', scheme: 'bearer', description: 'The API key.' } },
    },
  }
}

function operation(name: RouteName, route: Route, components: Components): Operation {
  const parameters = [
    ...pathParameters(route),
    ...queryParameters(route, components),
    ...headerParameters(route),
  ]
  const error = { $ref: '#/components/responses/Error' }
  return {
    operationId: name,
    summary: route.summary,
    tags: [route.tag],
    ...(parameters.length > 0 && { parameters }),
    ...(route.body !== undefined && { requestBody: requestBody(route.body, components) }),
    responses: {
      [route.status]: success(route, components),
      ...(route.progress && { 200: progressing(route, components) }),
      ...(route.streams && { 204: { description: 'There is nothing more to tell.' } }),
      ...(!route.open && { 401: error }),
      default: error,
    },
    ...(route.open && { security: [] }),
    ...(route.websocket && {
      'x-websocket': {
        server: components.add(attachServerMessage, 'output'),
        client: components.add(attachClientMessage, 'input'),
      },
    }),
  }
}

function pathParameters(route: Route) {
  return [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name: name!,
    in: 'path' as const,
    required: true,
    schema: { type: 'string' } as JsonSchema,
  }))
}

function queryParameters(route: Route, components: Components) {
  if (!route.query) return []
  const schema = components.add(route.query, 'input')
  const required = (schema.required ?? []) as string[]
  return Object.entries(schema.properties ?? {}).map(([name, schema]) => ({
    name,
    in: 'query' as const,
    required: required.includes(name),
    schema: schema as JsonSchema,
  }))
}

function headerParameters(route: Route) {
  const schema: JsonSchema = { type: 'string', maxLength: 255 }
  const names = [
    ...(route.idempotent ? ['Idempotency-Key'] : []),
    ...(route.streams ? ['Last-Event-ID'] : []),
  ]
  return names.map((name) => ({ name, in: 'header' as const, required: false, schema }))
}

function requestBody(
  body: NonNullable<Route['body']>,
  components: Components,
): NonNullable<Operation['requestBody']> {
  if (body === 'bytes') return { required: true, content: { 'application/octet-stream': { schema: BINARY } } }
  return { required: true, content: { 'application/json': { schema: components.add(body, 'input') } } }
}

function success(route: Route, components: Components): unknown {
  const { response, status, summary } = route
  const headers = route.wakes && { headers: WOKEN }
  if (response === null) return { description: status === 101 ? 'A WebSocket.' : 'Done.', ...headers }
  const [type, schema] =
    response === 'bytes'
      ? ['application/octet-stream', BINARY]
      : response === 'lines'
        ? ['application/x-ndjson', components.add(imageProgress, 'output')]
        : ['application/json', components.add(response, 'output')]
  const stream = route.streams && { 'text/event-stream': { schema: EVENT_STREAM } }
  const lines = route.lines && { 'application/x-ndjson': { schema: components.add(route.lines, 'output') } }
  return { description: summary, ...headers, content: { [type]: { schema }, ...stream, ...lines } }
}

/** With its result as JSON, if that has the same status. */
function progressing(route: Route, components: Components): unknown {
  const whole = route.status === 200 ? (success(route, components) as { content: object }).content : {}
  const shapes = [route.progress!, ...(route.lines ? [route.lines] : [])]
  const [schema, ...others] = shapes.map((shape) => components.add(shape, 'output'))
  const lines = {
    'application/x-ndjson': { schema: others.length > 0 ? { anyOf: [schema, ...others] } : schema },
  }
  const description = 'With `Accept: application/x-ndjson`: progress, then the result.'
  return { description, content: { ...whole, ...lines } }
}
