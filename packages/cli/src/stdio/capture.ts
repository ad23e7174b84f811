// Captured output. It is requested as base64, which carries any bytes, and shown as text if it is text.
import { writeAll } from '../output.ts'

export const CAPTURE = { encoding: 'base64' } as const

interface Captured {
  stdout: string
  stderr: string
  /** Both streams, in the order they were written. */
  output?: string
  truncated: boolean
}

type Encoding = 'utf8' | 'base64'
type Encodings = { stdoutEncoding: Encoding; stderrEncoding: Encoding; outputEncoding?: Encoding }

/**
 * For JSON: a stream becomes text if it is UTF-8, else it stays base64; `stdoutEncoding` and its like say which.
 * Truncated output is cut at the end `lost`; a character that was cut in two there does not make it binary.
 */
export function readable<Result extends Captured>(
  result: Result,
  lost: 'beginning' | 'end' = 'end',
): Result & Encodings {
  const read: Record<string, string> = {}
  for (const name of ['stdout', 'stderr', 'output'] as const) {
    const encoded = result[name]
    if (encoded === undefined) continue
    const text = textOf(Buffer.from(encoded, 'base64'), result.truncated ? lost : undefined)
    read[name] = text ?? encoded
    read[`${name}Encoding`] = text === undefined ? 'base64' : 'utf8'
  }
  return { ...result, ...(read as unknown as Encodings) }
}

/** Undefined if the bytes are not UTF-8. */
function textOf(bytes: Buffer, lost: 'beginning' | 'end' | undefined): string | undefined {
  const isContinuation = (byte: number | undefined) => byte !== undefined && (byte & 0xc0) === 0x80
  let from = 0
  if (lost === 'beginning') while (from < 3 && isContinuation(bytes[from])) from++
  try {
    const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
    return decoder.decode(bytes.subarray(from), { stream: lost === 'end' })
  } catch {
    return undefined
  }
}

/** Both streams to ours. */
export async function writeCaptured(
  { stdout, stderr }: Pick<Captured, 'stdout' | 'stderr'>,
  encoding: Encoding = CAPTURE.encoding,
): Promise<void> {
  await writeAll(process.stdout, Buffer.from(stdout, encoding))
  await writeAll(process.stderr, Buffer.from(stderr, encoding))
}
