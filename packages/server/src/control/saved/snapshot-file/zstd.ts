// Node has zstd since 22.15. The server also runs on 22.13, but cannot read or write snapshot files there.
import zlib, { type ZstdOptions } from 'node:zlib'
import { IsletError } from '@islet/contract'

export function zstdCompress(options: ZstdOptions): zlib.ZstdCompress {
  return (zlib.createZstdCompress ?? refuse)(options)
}

export function zstdDecompress(options: ZstdOptions): zlib.ZstdDecompress {
  return (zlib.createZstdDecompress ?? refuse)(options)
}

function refuse(): never {
  throw new IsletError('not_supported', `Node ${process.version} of this server cannot read or write zstd.`, {
    hint: 'Run the server with Node 22.15 or newer.',
  })
}
