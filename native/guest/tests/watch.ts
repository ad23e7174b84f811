// A WATCH and what it has seen.
import type { Fields, Guest, Stream } from './harness.ts'

const KINDS = ['', 'created', 'changed', 'removed', 'overflow']

export class Watch {
  readonly stream: Stream
  readonly root: string
  readonly seen: string[] = []
  constructor(stream: Stream, root: string) {
    this.stream = stream
    this.root = root
  }

  static async open(guest: Guest, root: string, fields: Fields = { recursive: 1 }) {
    const watch = new Watch(guest.request('WATCH', { path: root, ...fields }), root)
    await watch.stream.next('OPENED')
    return watch
  }

  /** Takes events until this one; each is "kind path", a directory's path with a slash at its end. */
  async until(event: string): Promise<string[]> {
    while (!this.seen.includes(event)) {
      const { fields } = await this.stream.next('EVENT')
      const path = fields.path === this.root ? '.' : fields.path.slice(this.root.length + 1)
      this.seen.push(`${KINDS[fields.kind]} ${path}${fields.directory ? '/' : ''}`)
    }
    return this.seen.splice(0, this.seen.indexOf(event) + 1)
  }

  close() {
    this.stream.send('RESET')
  }
}
