// Turns zod's issues into one error that names the field.
import { type ErrorCode, IsletError, isErrorCode } from '@islet/contract'
import type { z } from 'zod'

type Issue = z.core.$ZodIssue
interface Finding {
  path: string
  message: string
  code: ErrorCode
}

// More than a person reads; a hostile body could have one issue per byte.
const MAX_ISSUES = 20

export function validate<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  where: 'body' | 'query' | 'path' | 'message',
): z.output<Schema> {
  let result: z.ZodSafeParseResult<z.output<Schema>>
  try {
    result = schema.safeParse(value)
  } catch (error) {
    if (error instanceof RangeError) throw new IsletError('bad_request', `The ${where} is nested too deeply.`)
    throw error
  }
  if (result.success) return result.data
  throw asError(result.error.issues, where)
}

function asError(issues: readonly Issue[], where: string): IsletError {
  const findings = issues.slice(0, MAX_ISSUES).flatMap((issue) => describe(issue, []))
  const first = findings.find(({ code }) => code !== 'bad_request') ?? findings[0]!
  const message = first.path === '' ? `The ${where}: ${first.message}.` : `${first.path}: ${first.message}.`
  return new IsletError(first.code, message, {
    details: { issues: findings.slice(0, MAX_ISSUES).map(({ path, message }) => ({ path, message })) },
  })
}

function describe(issue: Issue, parent: readonly PropertyKey[]): Finding[] {
  const path = [...parent, ...issue.path]
  if (issue.code === 'invalid_union' && issue.errors.length > 0) return describeUnion(issue, path)
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.slice(0, MAX_ISSUES).map((key) => ({
      path: show([...path, key]),
      message: 'there is no such field',
      code: 'bad_request',
    }))
  }
  if (issue.code === 'invalid_key')
    return issue.issues.flatMap((inner) => describe({ ...inner, path: [] } as Issue, path))
  const code = issue.code === 'custom' ? issue.params?.code : undefined
  return [{ path: show(path), message: issue.message, code: isErrorCode(code) ? code : 'bad_request' }]
}

/** Describes the alternative whose type matches; if none does, lists the types that were expected. */
function describeUnion(issue: z.core.$ZodIssueInvalidUnion, path: readonly PropertyKey[]): Finding[] {
  const meant = issue.errors.find((branch) => !branch.some((inner) => isWrongType(inner)))
  if (meant) return meant.flatMap((inner) => describe(inner, path))
  const expected = issue.errors.flatMap((branch) => branch.filter(isWrongType).map(expectedOf))
  const message = expected.length > 0 ? `expected ${[...new Set(expected)].join(' or ')}` : issue.message
  return [{ path: show(path), message, code: 'bad_request' }]
}

const isWrongType = (issue: Issue): boolean => issue.code === 'invalid_type' && issue.path.length === 0
const expectedOf = (issue: Issue): string =>
  issue.code === 'invalid_type' ? issue.expected : 'something else'

function show(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, part) => {
    if (typeof part === 'number') return `${text}[${part}]`
    return text === '' ? String(part) : `${text}.${String(part)}`
  }, '')
}
