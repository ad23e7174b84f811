import { Command } from 'commander'
import { build } from './image/build.ts'
import { collect } from './image/collect.ts'
import { importImage } from './image/import.ts'
import { ls } from './image/ls.ts'
import { pull } from './image/pull.ts'
import { rm } from './image/rm.ts'

const COMMANDS = [ls, pull, build, importImage, rm, collect]

export function image(): Command {
  const group = new Command('image').description('What sandboxes are made from.')
  group.addHelpText('after', '\nExample:\n  islet image pull python:3.13-slim --name python')
  for (const make of COMMANDS) group.addCommand(make())
  return group
}
