// What a sandbox does by itself after a while, as options.
import { IDLE_ACTIONS } from '@islet/contract/client'
import type { Timeouts } from '@islet/sdk'
import { type Command, Option } from 'commander'
import { lasting } from './parse.ts'

export interface TimeoutFlags {
  idle?: number
  execution?: number
  paused?: number
  onIdle?: Timeouts['onIdle']
}

export interface SandboxTimeoutFlags {
  idleTimeout?: number
  executionTimeout?: number
  pausedTimeout?: number
  onIdle?: Timeouts['onIdle']
}

const IDLE = 'how long it may be idle, like 10m; 0 is never'
const EXECUTION = 'how long its commands may run if they do not say, like 2m; 0 is for ever'
const PAUSED = 'how long it may stay paused before it is removed, like 24h; 0 is for ever'
const ON_IDLE = 'what becomes of it when it has been idle for so long'

export function addTimeoutOptions(command: Command): Command {
  return command
    .option('--idle <duration>', IDLE, lasting)
    .option('--execution <duration>', EXECUTION, lasting)
    .option('--paused <duration>', PAUSED, lasting)
    .addOption(onIdle())
}

/** For commands whose own words would not say whose timeout it is. */
export function addSandboxTimeoutOptions(command: Command): Command {
  return command
    .option('--idle-timeout <duration>', IDLE, lasting)
    .option('--execution-timeout <duration>', EXECUTION, lasting)
    .option('--paused-timeout <duration>', PAUSED, lasting)
    .addOption(onIdle())
}

export function toSandboxTimeouts(flags: SandboxTimeoutFlags): Timeouts | undefined {
  const { idleTimeout: idle, executionTimeout: execution, pausedTimeout: paused, onIdle } = flags
  return toTimeouts({ idle, execution, paused, onIdle })
}

export function toTimeouts({ idle, execution, paused, onIdle }: TimeoutFlags): Timeouts | undefined {
  const given = { idle, execution, paused, onIdle }
  return Object.values(given).some((value) => value !== undefined) ? given : undefined
}

const onIdle = (): Option => new Option('--on-idle <action>', ON_IDLE).choices([...IDLE_ACTIONS])
