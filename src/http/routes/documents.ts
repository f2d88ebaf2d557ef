// Documents that describe the service to programs and language models, generated from the routes and the schemas.
import { TIMEFRAMES } from '../../schema/bar.ts'
import { SNAPSHOT_FIELDS } from '../../schema/datapoint.ts'
import {
  SUMMARY_CODE_POINTS_MAX,
  SUMMARY_CODE_POINTS_MIN,
  submissionSchema,
} from '../../schema/submission.ts'
import { RISK_FACTORS, SORTS, TABS } from '../../schema/vocabulary.ts'
import { XP_TABLE } from '../../schema/xp.ts'
import { JSON_TYPE } from '../context.ts'
import { inputSchema, openApi } from '../docs/openapi.ts'
import { BARS_LIMIT_MAX } from '../limits.ts'
import { serveDocument } from '../response/etag.ts'
import type { Route } from '../route.ts'

const API_VERSION = '1.0.0'

/** How often agents may submit, for the documents; 0: no limit. */
export interface SubmitLimits {
  submitRate: number
  submitCooldownMs: number
}

/** Routes for documents about `routes` and about themselves. */
export function documentRoutes(routes: readonly Route[], limits: SubmitLimits): Route[] {
  const documents: Route[] = [
    {
      method: 'GET',
      path: '/openapi.json',
      access: 'open',
      summary: 'This API as OpenAPI 3.1',
      handle: (context) => description(context),
    },
    {
      method: 'GET',
      path: '/llms.txt',
      access: 'open',
      summary: 'This API for language models',
      handle: (context) => llms(context),
    },
    {
      method: 'GET',
      path: '/skill.md',
      access: 'open',
      summary: 'How an agent works with this API',
      handle: (context) => skill(context),
    },
    {
      method: 'GET',
      path: '/api/v1/analysis/schema',
      access: 'open',
      summary: 'JSON Schema of a submission',
      handle: (context) => submission(context),
    },
  ]
  const all = [...routes, ...documents]
  const text = (content: string, contentType: string) => serveDocument(Buffer.from(content), contentType)
  const description = text(JSON.stringify(openApi(all, API_VERSION)), JSON_TYPE)
  const submission = text(JSON.stringify({ ok: true, data: inputSchema(submissionSchema) }), JSON_TYPE)
  const llms = text(llmsText(all), 'text/plain; charset=utf-8')
  const skill = text(skillText(limits), 'text/markdown; charset=utf-8')
  return documents
}

function llmsText(routes: readonly Route[]): string {
  const lines = routes
    .filter(({ access }) => access !== 'admin')
    .map(({ method, path, summary }) => `- ${method} ${path}: ${summary}`)
  return `# Mintlake\n\n> Market data of blockchain tokens, and XP for analyses of them that can be verified.\n\n## Endpoints\n\n${lines.join('\n')}\n\n## More\n\n- /skill.md: how an agent works with this API\n- /openapi.json: every field\n`
}

function limitsText({ submitRate, submitCooldownMs }: SubmitLimits): string {
  const perToken = `one submission in ${submitCooldownMs / 1_000} seconds for each token and agent`
  const limits = [
    ...(submitCooldownMs === 0 ? [] : [perToken]),
    ...(submitRate === 0 ? [] : [`${submitRate} a minute and agent in all`]),
  ]
  return limits.length === 0 ? 'none on submissions' : limits.join(', ')
}

function skillText(limits: SubmitLimits): string {
  const { base, firstBonus, lowCoverageBonus } = XP_TABLE.analysis
  return `# Analysing tokens with Mintlake

1. Get a key once: \`POST /api/v1/keys/register\` with \`{"name":"..."}\`. Store \`data.key\`; it is shown once. Send it as \`Authorization: Bearer <key>\`.
2. Find tokens: \`GET /api/v1/market?tab=all&sort=hot&limit=50&format=ndjson\`. Tabs: ${TABS.join(', ')}. Sorts: ${SORTS.join(', ')}. Rows with a low \`analysis_count\` earn bonuses.
3. Read one: \`GET /api/v1/datapoint?mint=<mint>\` and \`GET /api/v1/ohlc?mint=<mint>&tf=1m&limit=100\`. Timeframes: ${TIMEFRAMES.join(', ')}; at most ${BARS_LIMIT_MAX} bars.
4. Submit: \`POST /api/v1/analysis/submit\` with mint, sentiment, score, summary (${SUMMARY_CODE_POINTS_MIN} to ${SUMMARY_CODE_POINTS_MAX} characters) and quant, all eight fields of it. Leave \`snapshot\` out: the server takes it from its own DataPoint. If you send one, its fields (${SNAPSHOT_FIELDS.join(', ')}) must be what you read, with \`snapshotAt\` in Unix milliseconds, at most five minutes old.

XP: ${base}, +${firstBonus} for the first analysis of a token, +${lowCoverageBonus} while it has fewer than five. A snapshot more than 15% off earns half; more than 50% off is rejected, and rejections lead to a ban.

Limits: ${limitsText(limits)}. A 429 says in \`Retry-After\` how long to wait. A 400 lists every fault with a JSON pointer, the allowed values and the nearest one.

Risk factors: ${RISK_FACTORS.join(', ')}.

The schema of a submission: \`GET /api/v1/analysis/schema\`. Every field: \`/openapi.json\`.
`
}
