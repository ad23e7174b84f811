import { LIMITS } from '../limits.ts'
import * as signal from '../schemas/signal.ts'
import { type Route, SANDBOX } from './route.ts'

export const signalRoutes = {
  signals: {
    method: 'GET',
    path: `${SANDBOX}/signals`,
    summary: 'Signals as they happen; connecting starts them',
    tag: 'signals',
    wakes: true,
    websocket: true,
    response: null,
    status: 101,
  },
  emitSignal: {
    method: 'POST',
    path: `${SANDBOX}/signals`,
    summary: 'Tell everybody who listens',
    tag: 'signals',
    wakes: true,
    body: signal.signalEvent,
    bodyBytes: LIMITS.signalBodyBytes,
    response: null,
    status: 204,
  },
  signalStatus: {
    method: 'GET',
    path: `${SANDBOX}/signals/status`,
    summary: 'Are signals started?',
    tag: 'signals',
    response: signal.signalStatus,
    status: 200,
  },
  startSignals: {
    method: 'POST',
    path: `${SANDBOX}/signals/start`,
    summary: 'Start signals',
    tag: 'signals',
    wakes: true,
    response: signal.signalStatus,
    status: 200,
  },
  stopSignals: {
    method: 'POST',
    path: `${SANDBOX}/signals/stop`,
    summary: 'Stop signals for everybody who listens',
    tag: 'signals',
    response: signal.signalStatus,
    status: 200,
  },
  emitSignalInside: {
    method: 'POST',
    path: '/v1/signals',
    summary: 'The same from inside a sandbox, or with its token',
    tag: 'signals',
    ofCaller: true,
    tokenless: true,
    body: signal.signalEvent,
    bodyBytes: LIMITS.signalBodyBytes,
    response: null,
    status: 204,
  },
} as const satisfies Record<string, Route>
