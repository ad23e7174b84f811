import { LIMITS } from '../limits.ts'
import * as service from '../schemas/service.ts'
import { SANDBOX, tagged } from './route.ts'

const SERVICE = `${SANDBOX}/services/{name}` as const

export const serviceRoutes = tagged('services', {
  startService: {
    method: 'POST',
    path: `${SANDBOX}/services`,
    summary: 'Start a service; replaces a stopped or failed one of the same name',
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
    response: service.serviceList,
  },
  getService: {
    method: 'GET',
    path: SERVICE,
    summary: 'Get one service; may wait for a status',
    query: service.getService,
    response: service.serviceInfo,
  },
  deleteService: {
    method: 'DELETE',
    path: SERVICE,
    summary: 'Stop a service and delete it',
    wakes: true,
    response: null,
  },
  stopService: {
    method: 'POST',
    path: `${SERVICE}/stop`,
    summary: 'Stop a service; answers when it has stopped',
    wakes: true,
    response: service.serviceInfo,
  },
  restartService: {
    method: 'POST',
    path: `${SERVICE}/restart`,
    summary: 'Restart a service, or start it if it is stopped; answers when its command runs',
    wakes: true,
    response: service.serviceInfo,
  },
  serviceLogs: {
    method: 'GET',
    path: `${SERVICE}/logs`,
    summary: 'Get the kept output of a service',
    query: service.serviceLogsQuery,
    response: service.serviceLogs,
  },
})
