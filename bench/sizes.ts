// The sizes of test data, the same for Islet, Docker and the floor.
export const MB = 1_000_000
export const MIB = 1024 * 1024

/** The file that goes up and down. */
export const TRANSFER_BYTES = 256 * MB

/** Repeats one chunk, so that producing it takes no time. */
export async function* transferContent(): AsyncGenerator<Uint8Array> {
  const piece = new Uint8Array(MIB).fill(7)
  for (let left = TRANSFER_BYTES; left > 0; left -= piece.length)
    yield left < piece.length ? piece.subarray(0, left) : piece
}

/** The change that is checkpointed and forked. */
export const TREE = { files: 20_000, bytes: 50 * MB, perFolder: 100 }

/** A command that writes all files below `tree`, with new content. */
export const CHANGE = `python3 -c "
import os
for i in range(${TREE.files}):
    d = f'tree/{i // ${TREE.perFolder}}'
    if i % ${TREE.perFolder} == 0: os.makedirs(d, exist_ok=True)
    with open(f'{d}/{i}', 'wb') as f: f.write(os.urandom(${TREE.bytes / TREE.files}))
"`
