// The settings of previews, from text.

export interface PortRange {
  from: number
  to: number
}

export function portRange(value: string): PortRange {
  const [, from, to] = (/^(\d{1,5})-(\d{1,5})$/.exec(value) ?? []).map(Number)
  if (from !== undefined && to !== undefined && from >= 1 && from <= to && to <= 65_535) return { from, to }
  throw new Error('it must be a range of ports like 20000-20999')
}

/** The common part of preview URLs: `{port}-{sandbox}.` goes before the name. */
export interface PreviewOrigin {
  scheme: 'http' | 'https'
  name: string
  /** Undefined: the scheme's default port. */
  port: number | undefined
}

/** A label of at most 63 characters; the generated one must fit before the name within 253. */
const NAME = /^(?=.{1,220}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/

export function previewOrigin(value: string): PreviewOrigin {
  const [, scheme = 'https', name = '', port] =
    /^(?:(https?):\/\/)?([^/:]+)(?::(\d{1,5}))?\/?$/.exec(value) ?? []
  const number = port === undefined ? undefined : Number(port)
  const isName = NAME.test(name.toLowerCase()) && !/(^|\.)\d+$/.test(name)
  if (isName && (number === undefined || (number >= 1 && number <= 65_535))) {
    return { scheme: scheme as PreviewOrigin['scheme'], name: name.toLowerCase(), port: number }
  }
  throw new Error('it must be a domain like preview.example.com or http://preview.localhost:7400')
}
