import type { Seed } from '../seeds.ts'

export const iris: Seed = {
  store: [
    ['introduction: the token', 'the token of exec and files reaches the store, of its sandbox alone'],
    ['set: a simple value', 'set stores a scalar and an object with a time to live'],
    ['set: an object with ttl_seconds', 'set stores a scalar and an object with a time to live'],
    ['set: PUT /v1/store/{key}', 'the same over HTTP'],
    ['get', 'get returns the value as it was stored'],
    ['get: GET /v1/store/{key}, 404', 'the same over HTTP'],
    ['delete', 'delete removes a key'],
    ['delete: DELETE /v1/store/{key}', 'the same over HTTP'],
    ['list', 'list returns the keys with a prefix'],
    ['list: GET /v1/store', 'the same over HTTP'],
    ['batch', 'a batch is applied as a whole or not at all'],
    ['batch: POST /v1/store/batch', 'the same over HTTP'],
    ['use case: steps of an agent', 'an agent stores each step'],
    ['use case: branches', 'forks read what was stored before, each its own copy'],
    ['use case: caches', 'a value with a time to live is gone after it'],
    ['notes: any JSON', 'get returns the value as it was stored'],
    ['notes: any key', 'keys are plain strings'],
    ['notes: checkpoints', 'a restore brings back the store of the checkpoint'],
  ],
}
