// Descriptions of what a browser opens.
import { z } from 'zod'
import { okWith } from '../../schema/api/parts.ts'
import type { OperationDocs } from './operation-docs.ts'

const text = (description: string) => z.string().meta({ description })
const noSniff = { 'X-Content-Type-Options': z.literal('nosniff') }
const mediaTypeOf = (contentType: string): string => contentType.split(';')[0] ?? contentType

export const PAGE_DOCS = {
  root: {
    operationId: 'getRoot',
    tag: 'documents',
    answers: {
      302: {
        description: 'Where the reference is',
        content: {
          'application/json': okWith({ location: z.string() }).meta({
            examples: [{ ok: true, location: '/docs' }],
          }),
        },
        headers: z.object({ Location: text('Address of the reference') }),
      },
    },
    unversioned: true,
  },
  reference: {
    operationId: 'getReference',
    tag: 'documents',
    answers: {
      200: {
        description: 'A page',
        content: { 'text/html': z.string() },
        headers: z.object({
          'Content-Security-Policy': text('Scripts and requests of this server alone'),
          'Referrer-Policy': z.literal('no-referrer'),
          ...noSniff,
        }),
      },
    },
  },
  favicon: {
    operationId: 'getIcon',
    tag: 'documents',
    answers: {
      200: { description: 'An icon', content: { 'image/x-icon': null }, headers: z.object(noSniff) },
    },
  },
} as const satisfies Record<string, OperationDocs>

/** A file of the reference, of a text type. */
export const fileDocs = (name: string, contentType: string): OperationDocs => ({
  operationId: `getFile_${name.replaceAll(/\W/g, '_')}`,
  tag: 'documents',
  answers: {
    200: {
      description: 'The file',
      content: { [mediaTypeOf(contentType)]: z.string() },
      headers: z.object(noSniff),
    },
  },
})
