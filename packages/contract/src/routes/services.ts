import { LIMITS } from '../limits.ts'
import * as service from '../schemas/service.ts'
import { type Route, SANDBOX } from './route.ts'

const SERVICE = `${SANDBOX}/services/{name}` as const

export const serviceRoutes = {
  startService: {
    method: 'POST',
    path: `${SANDBOX}/services`,
    summary: 'Start a service; one of that name that is stopped or failed is replaced',
    tag: 'services',
    wakes: true,
    body: service.startService,
    bodyBytes: LIMITS.commandBodyBytes,
    response: service.serviceInfo,
    status: 201,
  },
  listServices: {
    method: 'GET',
    path: `${SANDBOX}/services`,
    summary: 'List the services',
    tag: 'services',
    response: service.serviceList,
    status: 200,
  },
  getService: {
    method: 'GET',
    path: SERVICE,
    summary: 'One service, or wait for its status',
    tag: 'services',
    query: service.getService,
    response: service.serviceInfo,
    status: 200,
  },
  deleteService: {
    method: 'DELETE',
    path: SERVICE,
    summary: 'Stop a service and forget it',
    tag: 'services',
    wakes: true,
    response: null,
    status: 204,
  },
  stopService: {
    method: 'POST',
    path: `${SERVICE}/stop`,
    summary: 'Stop a service; answers once it has stopped',
    tag: 'services',
    wakes: true,
    response: service.serviceInfo,
    status: 200,
  },
  restartService: {
    method: 'POST',
    path: `${SERVICE}/restart`,
    summary: 'Stop a service if it runs, and start it; answers once its command runs',
    tag: 'services',
    wakes: true,
    response: service.serviceInfo,
    status: 200,
  },
  serviceLogs: {
    method: 'GET',
    path: `${SERVICE}/logs`,
    summary: 'What is kept of its output',
    tag: 'services',
    query: service.serviceLogsQuery,
    response: service.serviceLogs,
    status: 200,
  },
} as const satisfies Record<string, Route>
