// Finds the endpoint of a request. HTTP requests and WebSocket upgrades use the same tree of path segments.
import { IsletError } from '@islet/contract'

export interface Found<Endpoint> {
  endpoint: Endpoint
  params: Record<string, string>
}

interface Node<Endpoint> {
  words: Map<string, Node<Endpoint>>
  parameter: Node<Endpoint> | undefined
  byMethod: Map<string, { endpoint: Endpoint; names: readonly string[] }>
}

/** A decoded segment of a path; undefined if it is not valid percent-encoded UTF-8. */
type Segment = string | undefined

export class Router<Endpoint> {
  readonly #root: Node<Endpoint> = emptyNode()

  /** `{name}` in the path is a parameter: any segment that is not empty. */
  add(method: string, path: string, endpoint: Endpoint): void {
    const names: string[] = []
    let node = this.#root
    for (const segment of path.split('/')) {
      const name = /^\{(\w+)\}$/.exec(segment)?.[1]
      if (name === undefined) node = wordOf(node, segment)
      else {
        names.push(name)
        node = node.parameter ??= emptyNode()
      }
    }
    node.byMethod.set(method, { endpoint, names })
  }

  /** HEAD finds the endpoint of GET. Throws `route_not_found`, `method_not_allowed`, or `bad_request` if the path cannot be decoded. */
  find(method: string, path: string): Found<Endpoint> {
    const values: Segment[] = []
    const allowed = new Set<string>()
    const found = walk(this.#root, segmentsOf(path), 0, method === 'HEAD' ? 'GET' : method, values, allowed)
    if (!found) throw notFound(allowed)
    const params: Record<string, string> = {}
    for (const [index, name] of found.names.entries()) {
      const value = values[index]
      if (value === undefined)
        throw new IsletError('bad_request', 'The path is not valid percent-encoded UTF-8.')
      params[name] = value
    }
    return { endpoint: found.endpoint, params }
  }
}

/** A word comes before a parameter, but only if it has the method: `/store/key` and `/store/{key}` are both routes. */
function walk<Endpoint>(
  node: Node<Endpoint>,
  segments: readonly Segment[],
  at: number,
  method: string,
  values: Segment[],
  allowed: Set<string>,
): { endpoint: Endpoint; names: readonly string[] } | undefined {
  if (at === segments.length) {
    const found = node.byMethod.get(method)
    if (!found) for (const other of node.byMethod.keys()) allowed.add(other)
    return found
  }
  const segment = segments[at]
  const word = segment === undefined ? undefined : node.words.get(segment)
  const found = word && walk(word, segments, at + 1, method, values, allowed)
  if (found || segment === '' || !node.parameter) return found
  values.push(segment)
  const taken = walk(node.parameter, segments, at + 1, method, values, allowed)
  if (!taken) values.pop()
  return taken
}

function notFound(allowed: Set<string>): IsletError {
  if (allowed.size === 0) return new IsletError('route_not_found')
  if (allowed.has('GET')) allowed.add('HEAD')
  const allow = [...allowed].sort()
  return new IsletError('method_not_allowed', `This route takes ${allow.join(', ')}.`, { details: { allow } })
}

/** Split before decoding: `%2F` is part of a segment. */
function segmentsOf(path: string): Segment[] {
  const segments = path.split('/')
  return path.includes('%') ? segments.map(decoded) : segments
}

function decoded(segment: string): Segment {
  try {
    return decodeURIComponent(segment)
  } catch {
    return undefined
  }
}

function emptyNode<Endpoint>(): Node<Endpoint> {
  return { words: new Map(), parameter: undefined, byMethod: new Map() }
}

function wordOf<Endpoint>(node: Node<Endpoint>, word: string): Node<Endpoint> {
  const known = node.words.get(word) ?? emptyNode<Endpoint>()
  node.words.set(word, known)
  return known
}
