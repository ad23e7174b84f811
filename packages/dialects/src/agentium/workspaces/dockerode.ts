// The part of the package dockerode that the backend docker uses. The package is optional, and so are its types.
import type { Duplex } from 'node:stream'

export interface DockerModule {
  default: new () => Dockerode
}

export interface Dockerode {
  readonly modem: {
    demuxStream(stream: Duplex, stdout: NodeJS.WritableStream, stderr: NodeJS.WritableStream): void
    followProgress(stream: NodeJS.ReadableStream, done: (error: Error | null) => void): void
  }
  createContainer(options: object): Promise<DockerContainer>
  pull(image: string): Promise<NodeJS.ReadableStream>
}

export interface DockerContainer {
  attach(options: object): Promise<Duplex & { unref?(): void }>
  start(): Promise<unknown>
  exec(options: object): Promise<DockerExec>
  restart(options: object): Promise<unknown>
  remove(options: object): Promise<unknown>
}

export interface DockerExec {
  start(options: object): Promise<Duplex>
  inspect(): Promise<{ Running: boolean; ExitCode: number | null }>
}
