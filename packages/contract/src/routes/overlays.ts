import * as overlay from '../schemas/overlay.ts'
import { type Route, SANDBOX } from './route.ts'

const OVERLAY = `${SANDBOX}/overlays/{oid}` as const

export const overlayRoutes = {
  createOverlay: {
    method: 'POST',
    path: `${SANDBOX}/overlays`,
    summary: 'Copy a template directory in the background',
    tag: 'overlays',
    fills: true,
    wakes: true,
    body: overlay.createOverlay,
    response: overlay.overlayInfo,
    status: 201,
  },
  listOverlays: {
    method: 'GET',
    path: `${SANDBOX}/overlays`,
    summary: 'List the overlays',
    tag: 'overlays',
    response: overlay.overlayList,
    status: 200,
  },
  getOverlay: {
    method: 'GET',
    path: OVERLAY,
    summary: 'One overlay',
    tag: 'overlays',
    response: overlay.overlayInfo,
    status: 200,
  },
  deleteOverlay: {
    method: 'DELETE',
    path: OVERLAY,
    summary: 'Stop copying and remove what the overlay put there',
    tag: 'overlays',
    wakes: true,
    response: null,
    status: 204,
  },
} as const satisfies Record<string, Route>
