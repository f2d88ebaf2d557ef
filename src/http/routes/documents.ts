// Documents that describe the service to people, programs and language models, generated from the routes and the schemas.
import { z } from 'zod'
import { submissionSchemaAnswerSchema } from '../../schema/api/submissions.ts'
import { submissionSchema } from '../../schema/submission.ts'
import { type HttpAnswer, JSON_TYPE } from '../context.ts'
import { type Description, describePath } from '../docs/one-path.ts'
import { inputSchema, openApi } from '../docs/openapi.ts'
import { documentDocs, json, jsonDocs, textType } from '../docs/operation-docs.ts'
import type { DocumentSettings } from '../docs/texts/limits-text.ts'
import { llmsText } from '../docs/texts/llms.ts'
import { skillText } from '../docs/texts/skill.ts'
import { streamsText } from '../docs/texts/streams.ts'
import { oneOf } from '../request/parameters.ts'
import { serveDocument } from '../response/etag.ts'
import type { PlainRoute, Route } from '../route.ts'
import { pageRoutes } from './pages.ts'

export const API_VERSION = '1.0.0'
const TEXT_TYPE = 'text/plain; charset=utf-8'
const MARKDOWN_TYPE = 'text/markdown; charset=utf-8'

const openApiSchema = z.looseObject({
  openapi: z.string(),
  info: z.looseObject({}),
  paths: z.looseObject({}),
})
/** Routes for documents about `routes` and about themselves. */
export function documentRoutes(routes: readonly Route[], settings: DocumentSettings): Route[] {
  let describe: PlainRoute['handle'] | null = null
  const documents: Route[] = [
    {
      method: 'GET',
      path: '/openapi.json',
      access: 'open',
      summary: 'This API as OpenAPI 3.1, or one path of it',
      docs: {
        ...documentDocs('getOpenApi', 'OpenAPI 3.1', json(openApiSchema)),
        query: z.object({
          path: z.string().optional().meta({
            description:
              'One path as it stands here, `{id}` included: only it, and the schemas that it needs',
          }),
        }),
      },
      handle: (context) => {
        describe ??= describer(openApi(all, API_VERSION) as Description)
        return describe(context)
      },
    },
    {
      method: 'GET',
      path: '/llms.txt',
      access: 'open',
      summary: 'This API for language models',
      docs: documentDocs('getLlmsTxt', 'What there is, with links', textType('text/plain')),
      handle: linked(TEXT_TYPE, settings, (base) => llmsText(base, all)),
    },
    {
      method: 'GET',
      path: '/skill.md',
      access: 'open',
      summary: 'How an agent works with this API',
      docs: documentDocs('getSkill', 'All that an agent needs', textType('text/markdown')),
      handle: linked(MARKDOWN_TYPE, settings, (base) => skillText(base, settings)),
    },
    {
      method: 'GET',
      path: '/streams.md',
      access: 'open',
      summary: 'How to follow changes over HTTP and WebSocket',
      docs: documentDocs(
        'getStreams',
        'Streams: lines, messages, resuming, bounds',
        textType('text/markdown'),
      ),
      handle: linked(MARKDOWN_TYPE, settings, streamsText),
    },
    {
      method: 'GET',
      path: '/api/v1/analysis/schema',
      access: 'open',
      summary: 'JSON Schema of a submission',
      docs: jsonDocs('getSubmissionSchema', 'analysis', 'JSON Schema', submissionSchemaAnswerSchema),
      handle: serveJson(() => ({ ok: true, data: inputSchema(submissionSchema) })),
    },
    ...pageRoutes(),
  ]
  const all = [...routes, ...documents]
  return documents
}

const serveJson = (make: () => object) => serveDocument(JSON_TYPE, () => Buffer.from(JSON.stringify(make())))

/** Serves the description, or what of it is about the path of the query. */
function describer(description: Description): PlainRoute['handle'] {
  const whole = serveJson(() => description)
  const paths = Object.keys(description.paths)
  const parts = new Map(paths.map((path) => [path, serveJson(() => describePath(description, path))]))
  return (context) => (parts.get(oneOf(context.query, 'path', ['', ...paths], '')) ?? whole)(context)
}

/** A handler for a text with absolute links: to the configured address, or to the one at which the client asks. */
const linked =
  (contentType: string, settings: DocumentSettings, text: (base: string) => string): PlainRoute['handle'] =>
  ({ origin }): HttpAnswer => ({
    status: 200,
    body: Buffer.from(text(settings.publicUrl === '' ? origin() : settings.publicUrl)),
    contentType,
  })
