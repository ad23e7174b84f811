import * as preview from '../schemas/preview.ts'
import { type Route, SANDBOX } from './route.ts'

export const portRoutes = {
  listPorts: {
    method: 'GET',
    path: `${SANDBOX}/ports`,
    summary: 'What listens now',
    tag: 'ports',
    wakes: true,
    response: preview.portList,
    status: 200,
  },
  createPreview: {
    method: 'POST',
    path: `${SANDBOX}/previews`,
    summary: 'A URL for a port; asking again changes it',
    tag: 'ports',
    body: preview.createPreview,
    response: preview.preview,
    status: 201,
  },
  listPreviews: {
    method: 'GET',
    path: `${SANDBOX}/previews`,
    summary: 'List the previews',
    tag: 'ports',
    response: preview.previewList,
    status: 200,
  },
  deletePreview: {
    method: 'DELETE',
    path: `${SANDBOX}/previews/{port}`,
    summary: 'Take the URL of a port away',
    tag: 'ports',
    response: null,
    status: 204,
  },
} as const satisfies Record<string, Route>
