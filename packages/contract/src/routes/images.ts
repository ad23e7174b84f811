import * as image from '../schemas/image.ts'
import { tagged } from './route.ts'

export const imageRoutes = tagged('images', {
  listRuntimes: {
    method: 'GET',
    path: '/v1/runtimes',
    summary: 'List the runtimes',
    query: image.listRuntimes,
    response: image.runtimeList,
  },
  listImages: {
    method: 'GET',
    path: '/v1/images',
    summary: 'List the images on this machine',
    response: image.imageList,
  },
  pullImage: {
    method: 'POST',
    path: '/v1/images/pull',
    summary: 'Pull an OCI image, or make a runtime of packages anew',
    fills: true,
    body: image.pullImage,
    response: 'lines',
  },
  buildImage: {
    method: 'POST',
    path: '/v1/images/build',
    summary: 'Build the Debian base image, or a runtime that is made of packages',
    fills: true,
    body: image.buildImage,
    response: 'lines',
  },
  importImage: {
    method: 'POST',
    path: '/v1/images/import',
    summary: 'Import a directory or tar on the server machine, from a path that its settings allow',
    fills: true,
    body: image.importImage,
    response: 'lines',
  },
  uploadImage: {
    method: 'POST',
    path: '/v1/images/upload',
    summary: 'Create an image from a tar (plain, gzip, xz or zstd) of any size',
    query: image.uploadImage,
    body: 'bytes',
    response: 'lines',
  },
  collectImages: {
    method: 'POST',
    path: '/v1/images/collect',
    summary: 'Remove images that have no name and are not in use',
    response: image.collectResult,
  },
  removeImage: {
    method: 'DELETE',
    path: '/v1/images/{name}',
    summary: 'Remove a runtime name and its image',
    response: null,
  },
})
