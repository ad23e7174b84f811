import { LIMITS } from '../limits.ts'
import * as signal from '../schemas/signal.ts'
import { SANDBOX, tagged } from './route.ts'

export const signalRoutes = tagged('signals', {
  signals: {
    method: 'GET',
    path: `${SANDBOX}/signals`,
    summary: 'Receive signals; connecting starts them',
    wakes: true,
    websocket: true,
    response: null,
  },
  emitSignal: {
    method: 'POST',
    path: `${SANDBOX}/signals`,
    summary: 'Emit a signal to all connected clients',
    wakes: true,
    body: signal.signalEvent,
    bodyBytes: LIMITS.signalBodyBytes,
    response: null,
  },
  signalStatus: {
    method: 'GET',
    path: `${SANDBOX}/signals/status`,
    summary: 'Whether signals are started',
    response: signal.signalStatus,
  },
  startSignals: {
    method: 'POST',
    path: `${SANDBOX}/signals/start`,
    summary: 'Start signals',
    wakes: true,
    response: signal.signalStatus,
  },
  stopSignals: {
    method: 'POST',
    path: `${SANDBOX}/signals/stop`,
    summary: 'Stop signals for all clients',
    response: signal.signalStatus,
  },
  emitSignalInside: {
    method: 'POST',
    path: '/v1/signals',
    summary: 'Emit a signal from inside a sandbox, or with its token',
    ofCaller: true,
    tokenless: true,
    body: signal.signalEvent,
    bodyBytes: LIMITS.signalBodyBytes,
    response: null,
  },
})
