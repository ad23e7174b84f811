import * as preview from '../schemas/preview.ts'
import { SANDBOX, tagged } from './route.ts'

export const portRoutes = tagged('ports', {
  listPorts: {
    method: 'GET',
    path: `${SANDBOX}/ports`,
    summary: 'List the ports on which programs listen now',
    wakes: true,
    response: preview.portList,
  },
  createPreview: {
    method: 'POST',
    path: `${SANDBOX}/previews`,
    summary: 'Create or change the preview URL of a port',
    body: preview.createPreview,
    response: preview.preview,
    status: 201,
  },
  listPreviews: {
    method: 'GET',
    path: `${SANDBOX}/previews`,
    summary: 'List the previews',
    response: preview.previewList,
  },
  deletePreview: {
    method: 'DELETE',
    path: `${SANDBOX}/previews/{port}`,
    summary: 'Delete the preview URL of a port',
    response: null,
  },
})
