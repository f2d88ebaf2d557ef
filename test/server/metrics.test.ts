// What operators watch: /metrics covers every part, in base units and with bounded labels, and the suggested alerts name only
// what is there.
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { seedToken, submission, submit, VALUES } from '../support/submission.ts'
import { openTestServer, type TestServer } from '../support/test-server.ts'

const ALERTS = readFileSync(new URL('../../scripts/alerts.yml', import.meta.url), 'utf8')
const EXPRESSIONS = [...ALERTS.matchAll(/^ +expr: '(.*)'$/gm)].map(([, expression]) => expression)
/** Families that say how much there is, not that something is wrong. */
const FIGURES = [
  'mintlake_checkpoint_bytes',
  'mintlake_checkpoint_peak_bytes',
  'mintlake_checkpoint_seconds',
  'mintlake_checkpoints_copied_total',
  'mintlake_checkpoints_total',
  'mintlake_enrichment_contradictions_total',
  'mintlake_exports',
  'mintlake_exports_held_bytes',
  'mintlake_feed_refused_ratio',
  'mintlake_feed_rejected_total',
  'mintlake_http_requests_total',
  'mintlake_journal_bytes',
  'mintlake_journal_events_total',
  'mintlake_journal_waiting_bytes',
  'mintlake_lake_bars_waiting',
  'mintlake_lake_bytes',
  'mintlake_lake_downloaded_bytes_total',
  'mintlake_lake_downloads',
  'mintlake_lake_files',
  'mintlake_lake_rows',
  'mintlake_lake_tokens_refused_total',
  'mintlake_lake_tokens_waiting',
  'mintlake_lake_waiting_rows',
  'mintlake_log_commits_total',
  'mintlake_log_unflushed_commits',
  'mintlake_market_bars',
  'mintlake_market_events_total',
  'mintlake_market_gaps_healed_total',
  'mintlake_market_gaps_healing',
  'mintlake_market_gaps_total',
  'mintlake_market_held_seconds',
  'mintlake_market_tokens',
  'mintlake_market_trades_earlier_priced_total',
  'mintlake_market_versions',
  'mintlake_overload_refused_total',
  'mintlake_queries',
  'mintlake_queries_total',
  'mintlake_queries_waiting',
  'mintlake_request_bodies_bytes',
  'mintlake_state_database_bytes',
  'mintlake_streams',
  'mintlake_streams_overloaded_total',
  'mintlake_streams_stalled',
  'mintlake_submissions_forgotten_total',
]
const LABELS = ['code', 'feed', 'kind', 'le', 'outcome', 'road', 'route', 'status', 'table']

let server: TestServer
let text: string
/** Type by name of the family. */
let families: Map<string, string>

/** The value of one line, such as `name{label="value"}`. */
function sampleOf(line: string, from = text): number | undefined {
  const found = from.split('\n').find((each) => each.startsWith(`${line} `))
  return found === undefined ? undefined : Number(found.slice(line.length))
}
const metrics = async (): Promise<string> => (await server.client.get('/metrics')).text

beforeAll(async () => {
  server = await openTestServer({
    feed: 'simulator',
    simulator: 'tokens=50',
    'submit-limits': 'cooldown-ms=60000',
  })
  const key = await server.client.register()
  const mint = await seedToken(server.client, Date.now())
  const answers = [
    await submit(server.client, key, submission(mint)),
    await submit(server.client, key, submission(mint)),
    await submit(server.client, key, submission(await seedToken(server.client, Date.now()), madeUp())),
    await server.client.get('/api/v1/nothing'),
  ]
  expect(answers.map(({ status }) => status)).toEqual([201, 429, 422, 404])
  text = await metrics()
  families = new Map([...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [name, type]))
})
afterAll(() => server.remove())

/** A snapshot that is far from what `seedToken` pushes. */
const madeUp = () => ({
  snapshot: { ...VALUES, priceUsd: VALUES.priceUsd * 9, snapshotAt: Date.now() },
})

describe('/metrics', () => {
  it('counts submissions by outcome and errors by code', () => {
    expect(sampleOf('mintlake_submissions_total{outcome="validated"}')).toBe(1)
    expect(sampleOf('mintlake_submissions_total{outcome="rejected"}')).toBe(1)
    expect(sampleOf('mintlake_submissions_total{outcome="unvalidated"}')).toBe(0)
    for (const code of ['mint_cooldown', 'snapshot_rejected', 'not_found'])
      expect(sampleOf(`mintlake_http_errors_total{code="${code}"}`), code).toBe(1)
  })

  it('shows what waits for the lake until it is there', async () => {
    expect(sampleOf('mintlake_log_unflushed_commits')).toBeGreaterThan(0)
    expect(sampleOf('mintlake_log_unflushed_bytes')).toBeGreaterThan(0)
    expect(sampleOf('mintlake_lake_waiting_rows{table="training"}')).toBe(1)
    await server.store.flushLake()
    let later = await metrics()
    while (sampleOf('mintlake_lake_rows{table="training"}', later) !== 1) later = await metrics()
    expect(sampleOf('mintlake_log_unflushed_commits', later)).toBe(0)
    expect(sampleOf('mintlake_lake_lag_seconds', later)).toBe(0)
    expect(sampleOf('mintlake_log_commits_total', later)).toBeGreaterThan(0)
  })

  it('tells the state of the store, the lake process, the disk, the feeds and the server', () => {
    const up = ['store_writable', 'lake_process_up', 'ready', 'feed_up{feed="simulator"}']
    for (const name of up) expect(sampleOf(`mintlake_${name}`), name).toBe(1)
    expect(sampleOf('mintlake_disk_free_bytes')).toBeGreaterThan(0)
    expect(sampleOf('mintlake_feed_accepted_total{feed="simulator"}')).toBeGreaterThan(0)
    expect(sampleOf('nodejs_eventloop_lag_p99_seconds')).toBeGreaterThanOrEqual(0)
  })

  it('has counters that end in _total, base units, and labels with few values', () => {
    for (const [name, type] of families) {
      if (!name.startsWith('mintlake_')) continue
      expect(name.endsWith('_total'), name).toBe(type === 'counter')
      expect(name).not.toMatch(/_(ms|millis|minutes|kb|mb|gb|percent)(_|$)/)
    }
    const labels = [...text.matchAll(/^mintlake_\w+\{(.*)\}/gm)].flatMap(([, list]) =>
      [...list.matchAll(/(\w+)="/g)].map(([, label]) => label),
    )
    expect(LABELS).toEqual(expect.arrayContaining([...new Set(labels)]))
  })
})

describe('the suggested alerts', () => {
  // Nodes of a cluster have further ones: test/cluster/metrics.drill.test.ts.
  const named = new Set(
    EXPRESSIONS.flatMap((each) => each.match(/\b(mintlake(?!_cluster)|nodejs|process)_\w+/g) ?? []),
  )
  /** A histogram's samples have suffixes. */
  const familyOf = (name: string): string => name.replace(/_bucket$/, '')

  it('are rules, each with an expression, a severity and what to do', () => {
    const alerts = [...ALERTS.matchAll(/^ +- alert: (\w+)$/gm)]
    expect(alerts.length).toBe(EXPRESSIONS.length)
    expect(new Set(alerts.map(([, name]) => name)).size).toBe(alerts.length)
    for (const member of ['severity', 'summary', 'description'])
      expect(ALERTS.match(new RegExp(`^ +${member}: `, 'gm')), member).toHaveLength(alerts.length)
  })

  it('name only metrics that exist', () => {
    expect([...named].filter((name) => !families.has(familyOf(name)))).toEqual([])
  })

  it('choose by labels only what is there from the beginning: what began at 1 would not have increased', () => {
    const selectors = EXPRESSIONS.flatMap((each) => [
      ...each.matchAll(/(mintlake_\w+)\{(\w+)=~?"([\w|]+)"\}/g),
    ])
    const chosen = selectors.flatMap(([, name, label, values = '']) =>
      values.split('|').map((value) => `${name}{${label}="${value}"}`),
    )
    expect(chosen).toContain('mintlake_http_errors_total{code="internal"}')
    expect(chosen.filter((sample) => sampleOf(sample) === undefined)).toEqual([])
  })

  it('name every metric of this server that can say that something is wrong', () => {
    const ours = [...families.keys()].filter((name) => name.startsWith('mintlake_'))
    const without = ours.filter((name) => ![...named].some((each) => familyOf(each) === name))
    expect(without.sort()).toEqual(FIGURES)
  })
})

describe('the dashboard', () => {
  interface Panel {
    id: number
    type: string
    title: string
    gridPos: { x: number; y: number; w: number; h: number }
    targets?: { expr: string; legendFormat: string }[]
  }
  const { panels, templating }: { panels: Panel[]; templating: { list: { name: string }[] } } = JSON.parse(
    readFileSync(new URL('../../scripts/grafana.json', import.meta.url), 'utf8'),
  )
  const targets = panels.flatMap((panel) => panel.targets ?? [])

  it('asks only for metrics that exist, and for labels that they have', () => {
    expect(targets.length).toBeGreaterThan(30)
    for (const { expr, legendFormat } of targets) {
      const names = expr.match(/\b(mintlake|nodejs|process)_\w+/g) ?? []
      expect(names.length, expr).toBeGreaterThan(0)
      for (const name of names) expect(families.has(name.replace(/_bucket$/, '')), name).toBe(true)
      const labels = [...`${legendFormat} ${expr}`.matchAll(/\{\{(\w+)\}\}|by \(([\w, ]+)\)/g)]
        .flatMap(([, legend, by]) => (legend ?? by ?? '').split(', '))
        .filter((label) => label !== 'instance')
      expect(LABELS, expr).toEqual(expect.arrayContaining(labels))
      // Every server has its lines where several are scraped.
      expect(expr).toContain('instance=~"$instance"')
      expect(expr.split('(').length, expr).toBe(expr.split(')').length)
    }
    const variables = [...JSON.stringify(panels).matchAll(/\$\{?(\w+)/g)].map(([, name]) => name)
    expect(new Set(variables)).toEqual(
      new Set([...templating.list.map(({ name }) => name), '__rate_interval']),
    )
  })

  it('draws a rate of counters, and figures as they are', () => {
    for (const { expr } of targets)
      for (const [name] of expr.matchAll(/\b(mintlake|process)_\w+/g)) {
        const isCounter = families.get(name) === 'counter' && !expr.startsWith('mintlake_journal_lost_total')
        expect(/rate\(|increase\(/.test(expr), expr).toBe(isCounter || name.endsWith('_bucket'))
      }
  })

  it('has panels that neither overlap nor share a title or an id', () => {
    for (const key of ['id', 'title'] as const)
      expect(new Set(panels.map((panel) => panel[key])).size).toBe(panels.length)
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, at) => `${x + (at % w)} ${y + Math.floor(at / w)}`),
    )
    expect(new Set(cells).size).toBe(cells.length)
    for (const { gridPos } of panels) expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24)
  })
})
