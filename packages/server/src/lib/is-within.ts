/** Whether a path is the directory or lies below it. Both are absolute and normalized. */
export function isWithin(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory.endsWith('/') ? directory : `${directory}/`)
}
