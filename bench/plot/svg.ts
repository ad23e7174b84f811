// The elements that the plots are drawn with. The background is white, so that they look the same on light and dark pages.
export const COLORS = {
  islet: '#0969da',
  docker: '#8c959f',
  floor: '#d4a72c',
  text: '#1f2328',
  quiet: '#59636e',
  grid: '#e6e9ed',
}
/** For lines that differ only in colour. */
export const PALETTE = ['#0969da', '#cf222e', '#1a7f37', '#9a6700', '#8250df', '#57606a']

const FONT = 'system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif'

export interface TextOptions {
  size?: number
  color?: string
  anchor?: 'start' | 'middle' | 'end'
  bold?: boolean
  /** Rotated, to be read upwards. */
  upright?: boolean
}

export function svg(width: number, height: number, title: string, parts: readonly string[]): string {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" font-family='${FONT}'>`,
    `<title>${escaped(title)}</title>`,
    `<rect width="${width}" height="${height}" rx="6" fill="#ffffff"/>`,
    ...parts,
    '</svg>',
    '',
  ].join('\n')
}

export function text(x: number, y: number, content: string, options: TextOptions = {}): string {
  const { size = 12, color = COLORS.text, anchor = 'start', bold, upright } = options
  const attributes = [
    `x="${at(x)}" y="${at(y)}" font-size="${size}" fill="${color}" text-anchor="${anchor}"`,
    bold ? 'font-weight="600"' : '',
    upright ? `transform="rotate(-90 ${at(x)} ${at(y)})"` : '',
  ]
  return `<text ${attributes.filter(Boolean).join(' ')}>${escaped(content)}</text>`
}

export function line(x1: number, y1: number, x2: number, y2: number, color: string, width = 1): string {
  return `<line x1="${at(x1)}" y1="${at(y1)}" x2="${at(x2)}" y2="${at(y2)}" stroke="${color}" stroke-width="${width}"/>`
}

export function rectangle(x: number, y: number, width: number, height: number, color: string): string {
  return `<rect x="${at(x)}" y="${at(y)}" width="${at(width)}" height="${at(height)}" rx="2" fill="${color}"/>`
}

export function path(points: readonly (readonly [number, number])[], color: string, dashed = false): string {
  const d = points.map(([x, y], index) => `${index === 0 ? 'M' : 'L'}${at(x)} ${at(y)}`).join('')
  return `<path d="${d}" fill="none" stroke="${color}" stroke-width="2" stroke-linejoin="round"${dashed ? ' stroke-dasharray="5 4"' : ''}/>`
}

export function dot(x: number, y: number, color: string): string {
  return `<circle cx="${at(x)}" cy="${at(y)}" r="3.5" fill="${color}"/>`
}

/** Three significant digits, without trailing zeros. */
export function short(value: number): string {
  if (value !== 0 && Math.abs(value) < 1) return String(Number(value.toPrecision(2)))
  return Math.abs(value) < 100 ? String(Number(value.toPrecision(3))) : Math.round(value).toLocaleString('en')
}

function at(value: number): string {
  return String(Math.round(value * 10) / 10)
}

function escaped(content: string): string {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
