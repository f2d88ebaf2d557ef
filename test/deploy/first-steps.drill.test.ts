// @module-tag drill
// README's first five minutes, as they stand there: its commands run one after the other in a shell, on a server with the default
// market. Only the port and the folder differ.
import { execFile } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type ServerProcess, spawnServer, temporaryFolder } from '../support/test-server.ts'

const ROOT = new URL('../..', import.meta.url).pathname
const READY = '=== next step'
const readme = readFileSync(join(ROOT, 'README.md'), 'utf8')
const section = readme.slice(readme.indexOf('## The first five minutes'), readme.indexOf('## The data path'))
/** Commands and what is shown of their output; the first block has none. */
const steps = [...section.matchAll(/```sh\n([^`]*)```\n```\n([^`]*)```/g)].map(([, commands, output]) => ({
  commands,
  shown: output.trimEnd().split('\n'),
}))

const folder = temporaryFolder()
let server: ServerProcess
let outputs: string[]

beforeAll(async () => {
  server = await spawnServer(
    { feed: 'simulator', 'lake-flush-ms': '200' },
    join(folder, 'data'),
    {},
    [],
    [join(ROOT, 'scripts/start.mjs')],
  )
  const script = steps
    .map(({ commands }) => commands)
    .join(`\necho '${READY}'\n`)
    .replaceAll('localhost:8080', new URL(server.client.url).host)
    .replaceAll('npx mintlake', `'${process.execPath}' '${join(ROOT, 'scripts/mintlake.mjs')}'`)
  const { stdout } = await promisify(execFile)('sh', ['-eu', '-c', script], { cwd: folder, timeout: 50_000 })
  outputs = stdout.split(`${READY}\n`)
})
afterAll(async () => {
  await server?.kill()
  rmSync(folder, { recursive: true, force: true })
})

it('has three steps, each with what is seen', () => {
  expect(steps).toHaveLength(3)
  expect(outputs).toHaveLength(3)
})

it('reads rows, a DataPoint and bars', () => {
  const [first, second, third, datapoint, bars, ...rest] = outputs[0].trimEnd().split('\n')
  expect(rest).toEqual([])
  for (const row of [first, second, third]) expect(JSON.parse(row).description).toMatch(/^Simulated token/)
  expect(JSON.parse(datapoint)).toMatchObject({ ok: true, data: { mint: JSON.parse(first).mint } })
  // The second one may still be forming. The first one may still take late trades, for five seconds.
  const told: { ok: boolean; data: { t: number; closed: boolean }[] } = JSON.parse(bars)
  expect(told).toMatchObject({ ok: true, data: [{}, {}] })
  expect(told.data.map(({ closed }) => closed)).not.toEqual([false, true])
  for (const member of steps[0].shown.join('').match(/"\w+"(?=:)/g) ?? [])
    expect(outputs[0]).toContain(member)
})

it('earns XP by a submission', () => {
  const receipt = JSON.parse(outputs[1])
  const shown = Object.fromEntries(
    [...steps[1].shown[0].matchAll(/"(ok|outcome|validated|xpEarned|xpTotal)":("?\w+"?)/g)].map(
      ([, member, value]) => [member, JSON.parse(value)],
    ),
  )
  expect(Object.keys(shown)).toHaveLength(5)
  expect(receipt).toMatchObject(shown)
})

it('finds it in the lake', () => {
  // Widths and the price differ from run to run.
  const cells = (line: string) => line.split('│').map((cell) => cell.trim())
  const [head, row] = [steps[2].shown[1], steps[2].shown[3]].map(cells)
  const found = outputs[2].split('\n').map(cells)
  expect(found[1]).toEqual(head)
  expect(found[3].slice(0, -2)).toEqual(row.slice(0, -2))
})
