/** What an Authorization header holds, if it is a bearer's. */
export function bearerOf(header: string | undefined): string | undefined {
  const match = header === undefined ? null : /^bearer +([\x21-\x7e]+) *$/i.exec(header)
  return match?.[1]
}
