// Cost of one change and of reading a page in a ranking of 100 000 market caps, at the top and at offset 50 000, compared with
// sorted-btree. 99 % of the changes are by half a percent, 1 % by up to 30 %. After every twenty changes the top hundred is
// read. At the end the order is checked against a full sort.
import BTreeModule from 'sorted-btree'
import { LazyRanking } from '../../src/market/rankings/lazy-ranking.ts'
import { random } from '../datasets/random.ts'
import { type Measured, microsecondsOf, type Question, type RunOptions, sha } from '../harness.ts'

const PAGE = 100
const CHANGES_PER_READ = 20

/** The package is CommonJS: Node imports its exports object, a bundler the class itself. */
const BTree = ('default' in BTreeModule ? BTreeModule.default : BTreeModule) as typeof BTreeModule.default

interface Market {
  tokens: number
  changes: number
  keys: Float64Array
  next: () => number
}

function market(tokens: number, { small }: RunOptions): Market {
  const next = random(1)
  const keys = new Float64Array(tokens)
  for (let id = 0; id < tokens; id++) keys[id] = 1e4 * Math.exp(6 * next())
  return { tokens, changes: small ? 2_000 : 400_000, keys, next }
}

/** A token and its next key. */
function change({ tokens, keys, next }: Market): { id: number; key: number } {
  const id = Math.floor(tokens * next())
  const width = next() < 0.99 ? 0.01 : 0.6
  return { id, key: keys[id] * (1 + (next() - 0.5) * width) }
}

async function ours(options: RunOptions, tokens: number): Promise<Measured> {
  const made = market(tokens, options)
  const { keys } = made
  const ranking = new LazyRanking({ capacity: tokens, keys, before: (a, b) => a < b })
  for (let id = 0; id < tokens; id++) ranking.insert(id)
  let sum = 0
  const started = performance.now()
  for (let index = 0; index < made.changes; index++) {
    const { id, key } = change(made)
    keys[id] = key
    ranking.changed(id)
    if (index % CHANGES_PER_READ === 0) sum += ranking.slice(0, PAGE, true)[PAGE - 1]
  }
  const updateNs = ((performance.now() - started) * 1e6) / made.changes
  const order = ranking.slice(0, tokens, true)
  for (let rank = 1; rank < tokens; rank++)
    if (keys[order[rank - 1]] < keys[order[rank]]) throw new Error(`rank ${rank} is out of order`)
  const ms = options.small ? 20 : 300
  const deep = Math.floor(tokens / 2)
  return {
    metrics: {
      updatesPerSecond: 1e9 / updateNs,
      updateNs,
      topPageUs: await microsecondsOf(() => ranking.slice(0, PAGE, true), ms),
      deepPageUs: await microsecondsOf(() => ranking.slice(deep, PAGE, true), ms),
    },
    checksum: `${sha(order)} ${sum}`,
  }
}

/** Descending by key, then by id, since keys of a tree have to be unique. */
function sortedBtree(options: RunOptions, tokens: number): Measured {
  const made = market(tokens, options)
  const { keys } = made
  const tree = new BTree<number, number>(
    undefined,
    // These keys have no ties, so the order of equal keys does not matter.
    (a: number, b: number) => b - a,
  )
  for (let id = 0; id < tokens; id++) tree.set(keys[id], id)
  let sum = 0
  const started = performance.now()
  for (let index = 0; index < made.changes; index++) {
    const { id, key } = change(made)
    tree.delete(keys[id])
    keys[id] = key
    tree.set(key, id)
    if (index % CHANGES_PER_READ === 0) {
      let taken = 0
      for (const each of tree.values()) {
        sum += each
        if (++taken === PAGE) break
      }
    }
  }
  const updateNs = ((performance.now() - started) * 1e6) / made.changes
  return { metrics: { updatesPerSecond: 1e9 / updateNs, updateNs }, checksum: `${tree.size} ${sum}` }
}

const HUNDRED_THOUSAND = ({ small }: RunOptions) => (small ? 2_000 : 100_000)

export const question: Question = {
  name: 'rankings',
  title: 'rankings, 100 000 tokens',
  rounds: 5,
  fullOnly: ['1 000 000 tokens'],
  candidates: {
    ours: (options) => ours(options, HUNDRED_THOUSAND(options)),
    'sorted-btree': (options) => sortedBtree(options, HUNDRED_THOUSAND(options)),
    '1 000 000 tokens': (options) => ours(options, 1_000_000),
  },
  comparisons: [
    {
      title: 'rankings: update, 100 000 tokens',
      metric: 'updatesPerSecond',
      against: 'sorted-btree',
      unit: 'updates/s',
      gate: 1.7,
      stretch: 2.2,
      better: 'higher',
    },
    {
      title: 'rankings: page of 100 at the top',
      metric: 'topPageUs',
      unit: 'µs',
      gate: 5,
      stretch: 1.5,
      better: 'lower',
    },
    {
      title: 'rankings: page of 100 at offset 50 000',
      metric: 'deepPageUs',
      unit: 'µs',
      gate: 10,
      stretch: 4,
      better: 'lower',
    },
    {
      title: 'rankings: update at 1 000 000 tokens',
      metric: 'updateNs',
      of: '1 000 000 tokens',
      against: 'ours',
      unit: 'ns',
      gate: 3,
      stretch: 2,
      better: 'lower',
    },
  ],
}
