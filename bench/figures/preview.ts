// The cost of the preview proxy: a small page through a preview, and from the same program directly on the machine.
import { giveNode } from '../../tests/support/node-inside.ts'
import type { Figure } from '../figure.ts'
import { Asker, HELLO } from '../floor/http.ts'
import { round, sample } from '../measure.ts'
import { BenchServer } from '../server.ts'

const PORT = 3000

export const previewFigure: Figure = {
  method:
    '2,000 GETs of a five-byte page, one after another on one kept connection, from a Node program in a sandbox through its preview; ' +
    'the proxy dials the sandbox anew for each. Floor: the same program on the machine itself.',

  async measure({ floor, quick }) {
    const n = quick ? 200 : 2000
    const without = await floor.request(n)
    await using server = await BenchServer.start()
    const sandbox = await server.create()
    await giveNode(sandbox)
    await sandbox.exec.spawn(['/usr/local/bin/node', '-e', HELLO, String(PORT)])
    const url = await sandbox.getUrl({ port: PORT })
    while ((await fetch(url)).status === 502);
    await server.filled()
    using asker = new Asker(url)
    const through = (await sample('preview', n, 100, () => asker.ask())).summary()
    return [
      {
        id: 'preview',
        figure: 'preview: GET, one after another',
        unit: 'ms',
        islet: through,
        floor: without,
        note: `without a preview; the proxy adds ${round(through.p50 - without.p50)} at p50, ${round(through.p95 - without.p95)} at p95`,
      },
    ]
  },
}
