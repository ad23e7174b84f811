// The file requests, one function each. After a lost connection reads are sent again, changes are not.

import { Violation } from '../errors.ts'
import type { Entry, Guest, WriteOptions } from '../guest.ts'
import { MAX_PATH } from '../messages.gen.ts'
import type { Presence } from '../presence.ts'
import { checkMode, checkNumber, checkOwner, checkPath, checkTarget } from './check.ts'
import { Downloads } from './download.ts'
import { type Listing, list, MAX_ENTRIES } from './list.ts'
import { toEntry } from './records.ts'
import { call, nothing } from './request.ts'
import { upload } from './upload.ts'

const MAX_U64 = Number.MAX_SAFE_INTEGER

export function fileRequests(presence: Presence) {
  const downloads = new Downloads(presence)
  return {
    async stat(path, { follow = true } = {}): Promise<Entry> {
      checkPath(path)
      const request = {
        name: 'STAT',
        fields: { path, follow: flag(follow) },
        about: { path },
        again: true,
      } as const
      return call(presence, request, (ok) => toEntry(ok.entry?.[0]))
    },

    async list(path, { depth = 1, limit = MAX_ENTRIES, signal, sink } = {}): Promise<Listing> {
      checkPath(path)
      checkNumber('depth', depth)
      checkNumber('limit', limit, MAX_U64)
      const fields = { path, depth, limit: Math.min(limit, MAX_ENTRIES) }
      return list(presence, { name: 'LIST', fields, about: { path }, signal, again: true }, sink)
    },

    async read(path, { offset, length, nofollow, signal } = {}) {
      checkPath(path)
      checkNumber('offset', offset, MAX_U64)
      checkNumber('length', length, MAX_U64)
      const fields = { path, offset, length, nofollow: nofollow ? 1 : undefined }
      const request = { name: 'READ', fields, about: { path }, signal, again: true } as const
      return downloads.start(request, ({ entry }, body) => ({ entry: toEntry(entry), body }), length)
    },

    async write(path, body, options: WriteOptions = {}): Promise<Entry> {
      checkPath(path)
      checkMode(options.mode)
      checkOwner(options.owner)
      checkOwner(options.newOwner)
      const { mode, owner, newOwner, signal } = options
      const fields = {
        path,
        mode,
        owner,
        newOwner,
        parents: flag(options.parents),
        exclusive: flag(options.exclusive),
      }
      const request = { name: 'WRITE', fields, about: { path }, signal } as const
      return upload(presence, request, body, (ok) => toEntry(ok.entry?.[0]))
    },

    async mkdir(path, { parents, mode, owner } = {}): Promise<void> {
      checkPath(path)
      checkMode(mode)
      checkOwner(owner)
      const fields = { path, parents: flag(parents), mode, owner }
      return call(presence, { name: 'MKDIR', fields, about: { path } }, nothing)
    },

    async move(from, to, { overwrite } = {}): Promise<void> {
      checkPath(from)
      checkPath(to)
      const fields = { from, to, overwrite: flag(overwrite) }
      return call(presence, { name: 'MOVE', fields, about: { path: from, to } }, nothing)
    },

    async copy(from, to, { recursive, overwrite, owner, skip = [], signal } = {}): Promise<void> {
      checkPath(from)
      checkPath(to)
      checkOwner(owner)
      const fields = {
        from,
        to,
        recursive: flag(recursive),
        overwrite: flag(overwrite),
        owner,
        skip: [...skip],
      }
      return call(presence, { name: 'COPY', fields, about: { path: from, to }, signal }, nothing)
    },

    async remove(path, { recursive, signal } = {}): Promise<void> {
      checkPath(path)
      const fields = { path, recursive: flag(recursive) }
      return call(presence, { name: 'REMOVE', fields, about: { path }, signal }, nothing)
    },

    async chmod(path, mode): Promise<void> {
      checkPath(path)
      checkMode(mode)
      return call(presence, { name: 'CHMOD', fields: { path, mode }, about: { path } }, nothing)
    },

    async chown(path, owner): Promise<void> {
      checkPath(path)
      checkOwner(owner)
      return call(presence, { name: 'CHOWN', fields: { path, owner }, about: { path, user: owner } }, nothing)
    },

    async symlink(path, target): Promise<void> {
      checkPath(path)
      checkTarget(target)
      return call(presence, { name: 'SYMLINK', fields: { path, target }, about: { path } }, nothing)
    },

    async realpath(path): Promise<string> {
      checkPath(path)
      return call(presence, { name: 'REALPATH', fields: { path }, about: { path }, again: true }, (ok) => {
        const real = ok.path ?? ''
        if (!real.startsWith('/') || real.length > MAX_PATH) throw new Violation('a malformed real path')
        return real
      })
    },

    async tarOut(path, { signal } = {}): Promise<AsyncIterable<Buffer>> {
      checkPath(path)
      const request = { name: 'TAR_OUT', fields: { path }, about: { path }, signal, again: true } as const
      return downloads.start(request, (_opened, body) => body)
    },

    async tarIn(path, body, { owner, signal } = {}): Promise<{ count: number }> {
      checkPath(path)
      checkOwner(owner)
      const request = { name: 'TAR_IN', fields: { path, owner }, about: { path }, signal } as const
      return upload(presence, request, body, (ok) => ({ count: ok.count ?? 0 }))
    },
  } satisfies Partial<Guest>
}

function flag(value: boolean | undefined): number {
  return value ? 1 : 0
}
