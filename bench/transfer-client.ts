// The process of a TransferClient: moves the file when it is told to, and answers with how long that took.
import { Sandbox } from 'islet'
import { TRANSFER_BYTES, transferContent } from './sizes.ts'
import type { Order } from './transfer.ts'

let sandbox: Promise<Sandbox> | undefined

process.on('message', async ({ url, apiKey, id, verb, path }: Order) => {
  try {
    sandbox ??= Sandbox.connect(id, { url, apiKey })
    const { files } = await sandbox
    const started = performance.now()
    if (verb === 'write') await files.write(path, transferContent())
    else await readAll(await files.readStream(path))
    process.send!({ ms: performance.now() - started })
  } catch (error) {
    process.send!({ error: String(error) })
  }
})

async function readAll(stream: AsyncIterable<Uint8Array>): Promise<void> {
  let bytes = 0
  for await (const chunk of stream) bytes += chunk.length
  if (bytes !== TRANSFER_BYTES) throw new Error(`read ${bytes} of ${TRANSFER_BYTES} bytes`)
}
