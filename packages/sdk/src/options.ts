// Unknown options are refused, not ignored: a misspelled `timout` must not run for ever.
//
// The types refuse them at compile time. `guard` refuses them at run time, and surplus arguments too. Each class lists its
// methods that take options; forgetting a method, or the name of an option, does not compile.
import { IsletError } from '@islet/contract/client'

/** The names of all options of a type. */
export type Names<Options> = { readonly [Name in keyof Required<Options>]: 1 }

export interface Abortable {
  signal?: AbortSignal
}
export const ABORTABLE: Names<Abortable> = { signal: 1 }

/** For each parameter of a method: the names of its options, or null if the parameter is something else. */
export type Checks<Target> = {
  [Name in keyof Target as HasOptions<Target[Name]> extends true ? Name : never]: Slots<Target[Name]>
}

/** A parameter holds options if it has a `signal`. */
type WithSignal<Value> = Value extends object
  ? string extends keyof Value
    ? never // a record, like the variables of an env file
    : 'signal' extends keyof Value
      ? Value
      : never
  : never
type HasOptions<Method> = Method extends (...args: infer Args) => unknown
  ? [WithSignal<NonNullable<Args[number]>>] extends [never]
    ? false
    : true
  : false
type Slots<Method> = Method extends (...args: infer Args) => unknown
  ? readonly [...Mapped<Required<Args>>, ...OfOverloads]
  : never
type Mapped<Args extends unknown[]> = { [Index in keyof Args]: Slot<NonNullable<Args[Index]>> }
/** TypeScript sees only the last signature of an overloaded method. */
type OfOverloads = (AnyNames | null)[]
type Slot<Value> = [WithSignal<Value>] extends [never]
  ? Readonly<Record<string, 1>> | null
  : Names<WithSignal<Value>>

type Method = (this: unknown, ...args: unknown[]) => unknown
type AnyNames = Readonly<Record<string, 1>>

const TEXT = Symbol('text')

/** For a parameter that is either options or text. */
export function orText<OfOptions extends object>(names: OfOptions): OfOptions {
  return Object.assign({ [TEXT]: true }, names)
}

/** Wraps the listed methods of a prototype, or the static methods of a class. Errors call the target `name`. */
export function guard<Target extends object>(target: Target, name: string, checks: Checks<Target>): void {
  for (const [key, slots] of Object.entries(checks) as [string, readonly (AnyNames | null)[]][]) {
    const method = Reflect.get(target, key) as Method
    const called = `${name}.${key}`
    const value = function (this: unknown, ...args: unknown[]): unknown {
      try {
        for (const [index, arg] of args.entries()) check(called, arg, slots[index])
      } catch (error) {
        // An async generator function must not return a promise.
        if (method.prototype && Symbol.asyncIterator in method.prototype) throw error
        return Promise.reject(error)
      }
      return method.apply(this, args)
    }
    Object.defineProperty(target, key, { value, writable: true, configurable: true })
  }
}

function check(called: string, arg: unknown, names: AnyNames | null | undefined): void {
  if (arg === undefined || names === null) return
  if (typeof arg === 'string' && names && TEXT in names) return
  if (names) refuseUnknown(called, arg, names)
  else throw new IsletError('bad_request', `${called} was called with too many arguments.`)
}

/** An option whose value is undefined counts as not given. */
export function refuseUnknown(called: string, options: unknown, names: AnyNames): void {
  if (options === undefined) return
  const takes = { hint: `It takes ${Object.keys(names).join(', ')}.` }
  if (typeof options !== 'object' || options === null || Array.isArray(options))
    throw new IsletError('bad_request', `The options of ${called} must be an object.`, takes)
  for (const option in options) {
    if (Object.hasOwn(names, option) || (options as Record<string, unknown>)[option] === undefined) continue
    const shown = option.slice(0, 64)
    throw new IsletError('bad_request', `${called} does not know the option ${shown}.`, {
      ...takes,
      details: { option: shown, method: called },
    })
  }
}
