// node strangers.ts <host> <port> <connections> <text>: connects that often, says the text on each connection and no more, prints
// `connected`, and stays until its standard input ends. Strangers are on other machines: here they take only the time that is left.
import { once } from 'node:events'
import { connect } from 'node:net'
import { constants, setPriority } from 'node:os'

/** The length of a listener's queue. */
const AT_ONCE = 200

const [host, port, connections, text] = process.argv.slice(2) as [string, string, string, string]
setPriority(constants.priority.PRIORITY_LOW)
let left = Number(connections)
await Promise.all(Array.from({ length: AT_ONCE }, comeOneByOne))
console.log('connected')
process.stdin.resume().once('end', () => process.exit())

async function comeOneByOne(): Promise<void> {
  while (left-- > 0) {
    const socket = connect(Number(port), host).resume()
    const closed = new Promise((resolve) => socket.on('error', () => {}).once('close', resolve))
    await Promise.race([once(socket, 'connect').catch(() => {}), closed])
    if (text) socket.write(text)
  }
}
