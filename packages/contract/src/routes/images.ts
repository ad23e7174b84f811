import * as image from '../schemas/image.ts'
import type { Route } from './route.ts'

export const imageRoutes = {
  listRuntimes: {
    method: 'GET',
    path: '/v1/runtimes',
    summary: 'The catalog',
    tag: 'images',
    response: image.runtimeList,
    status: 200,
  },
  listImages: {
    method: 'GET',
    path: '/v1/images',
    summary: 'Images on this machine',
    tag: 'images',
    response: image.imageList,
    status: 200,
  },
  pullImage: {
    method: 'POST',
    path: '/v1/images/pull',
    summary: 'Pull an OCI image',
    tag: 'images',
    body: image.pullImage,
    response: 'lines',
    status: 200,
  },
  buildImage: {
    method: 'POST',
    path: '/v1/images/build',
    summary: 'Build the Debian base',
    tag: 'images',
    body: image.buildImage,
    response: 'lines',
    status: 200,
  },
  importImage: {
    method: 'POST',
    path: '/v1/images/import',
    summary: 'Import a directory or tar of the server machine',
    tag: 'images',
    body: image.importImage,
    response: 'lines',
    status: 200,
  },
  collectImages: {
    method: 'POST',
    path: '/v1/images/collect',
    summary: 'Remove images that nothing names or uses',
    tag: 'images',
    response: image.collectResult,
    status: 200,
  },
  removeImage: {
    method: 'DELETE',
    path: '/v1/images/{name}',
    summary: 'Remove a runtime name and its image',
    tag: 'images',
    response: null,
    status: 204,
  },
} as const satisfies Record<string, Route>
