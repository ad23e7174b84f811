import * as overlay from '../schemas/overlay.ts'
import { SANDBOX, tagged } from './route.ts'

const OVERLAY = `${SANDBOX}/overlays/{oid}` as const

export const overlayRoutes = tagged('overlays', {
  createOverlay: {
    method: 'POST',
    path: `${SANDBOX}/overlays`,
    summary: 'Copy a template directory in the background',
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
    response: overlay.overlayList,
  },
  getOverlay: {
    method: 'GET',
    path: OVERLAY,
    summary: 'Get one overlay',
    response: overlay.overlayInfo,
  },
  deleteOverlay: {
    method: 'DELETE',
    path: OVERLAY,
    summary: 'Stop an overlay and remove what it copied',
    wakes: true,
    response: null,
  },
})
