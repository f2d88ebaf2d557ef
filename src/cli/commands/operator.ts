// Commands for keys, agents, bans and XP. They use the admin endpoints of a running server, which alone writes to the store.
import { AGENT_TYPES } from '../../schema/vocabulary.ts'
import { AWARDED_KINDS } from '../../schema/xp.ts'
import { type Command, EXIT, Failure, type Option, type Values } from '../command.ts'
import { counted, moment, wholeNumber } from '../common.ts'
import { ROW_FORMATS, type RowFormat, writeObjects } from '../rows.ts'
import { askAsOperator, URL_OPTION } from '../server-client.ts'
import { type Terminal, write } from '../terminal.ts'

const AGENT = { name: 'AGENT', description: 'its identity, ag_…, as in mintlake agents list' }
const FORMAT: Option = {
  value: 'FORMAT',
  otherwise: 'table',
  allowed: ROW_FORMATS,
  description: 'Output format',
}
const NEEDS_KEY = 'The server’s MINTLAKE_ADMIN_KEY must be in the environment.'

/** The part of GET /api/v1/admin/agents that is shown here. */
interface AgentSeen {
  agentId: string
  name: string
  type: string
  createdAtMs: number
  keys: { prefix: string; createdAtMs: number; expiresAtMs: number | null }[]
  bannedUntilMs: number | null
  banned: boolean
}

async function agentsOf(values: Values, terminal: Terminal): Promise<AgentSeen[]> {
  const { data } = await askAsOperator(values, terminal, { method: 'GET', path: '/api/v1/admin/agents' })
  return data as AgentSeen[]
}

async function tell<T = Record<string, unknown>>(
  values: Values,
  terminal: Terminal,
  path: string,
  body: Record<string, unknown>,
): Promise<T> {
  const said = Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null && value !== ''))
  return (await askAsOperator(values, terminal, { method: 'POST', path, body: said })).data as T
}

const time = (ms: number): string => new Date(ms).toISOString()

function makeBan({ banned, bannedUntilMs }: AgentSeen): string | null {
  if (!banned) return null
  return bannedUntilMs === null ? 'for good' : `until ${time(bannedUntilMs)}`
}

/** A key without an expiry is valid. */
const keyRow = (agent: AgentSeen, { prefix, createdAtMs, expiresAtMs }: AgentSeen['keys'][number]) => ({
  agent: agent.agentId,
  name: agent.name,
  key: prefix,
  created: time(createdAtMs),
  ends: expiresAtMs === null ? null : time(expiresAtMs),
})

const agentRow = (agent: AgentSeen) => ({
  agent: agent.agentId,
  name: agent.name,
  type: agent.type,
  keys: agent.keys.filter(({ expiresAtMs }) => expiresAtMs === null).length,
  created: time(agent.createdAtMs),
  banned: makeBan(agent),
})

const keysMake: Command = {
  name: 'keys make',
  summary: 'Create an agent and its key, even where registration is closed',
  operands: [{ name: 'NAME', description: 'the agent’s name, 1 to 64 characters' }],
  options: {
    type: {
      value: 'TYPE',
      otherwise: 'agent',
      allowed: AGENT_TYPES,
      description: 'A researcher may export the lake over HTTP',
    },
    description: { value: 'TEXT', description: 'What the agent is' },
    url: URL_OPTION,
  },
  notes: [NEEDS_KEY, 'The key alone goes to the standard output: key=$(mintlake keys make scout)'],
  async run(values, terminal) {
    const { NAME: name, type, description } = values
    const made = await tell<{ key: string; agentId: string }>(values, terminal, '/api/v1/admin/keys', {
      name,
      type,
      description,
    })
    await write(terminal.stdout, `${made.key}\n`)
    await write(terminal.stderr, `agent ${made.agentId}; the key is shown this once\n`)
    return EXIT.done
  },
}

const keysList: Command = {
  name: 'keys list',
  summary: 'List every key by agent: its first characters and its expiry',
  operands: [],
  options: { format: FORMAT, url: URL_OPTION },
  notes: [NEEDS_KEY],
  async run(values, terminal) {
    const agents = await agentsOf(values, terminal)
    const rows = agents.flatMap((agent) => agent.keys.map((key) => keyRow(agent, key)))
    const columns = ['agent', 'name', 'key', 'created', 'ends'] as const
    await writeObjects(columns, rows, values.format as RowFormat, terminal.stdout)
    return EXIT.done
  },
}

const keysRevoke: Command = {
  name: 'keys revoke',
  summary: 'Revoke all keys of an agent, or one of them',
  operands: [AGENT],
  options: {
    key: { value: 'PREFIX', description: 'Only the key that mintlake keys list shows with this prefix' },
    url: URL_OPTION,
  },
  notes: [NEEDS_KEY],
  async run(values, terminal) {
    const { AGENT: agentId, key: prefix } = values
    const { revoked } = await tell<{ revoked: number }>(values, terminal, '/api/v1/admin/revoke', {
      agentId,
      prefix,
    })
    if (revoked === 0)
      throw new Failure(`${agentId} has no ${prefix === '' ? 'key' : `key ${prefix}`} in force`)
    await write(terminal.stdout, `${counted(revoked, 'key')} revoked\n`)
    return EXIT.done
  },
}

const agentsList: Command = {
  name: 'agents list',
  summary: 'List every agent, and whether it is banned',
  operands: [],
  options: { format: FORMAT, url: URL_OPTION },
  notes: [NEEDS_KEY],
  async run(values, terminal) {
    const rows = (await agentsOf(values, terminal)).map(agentRow)
    const columns = ['agent', 'name', 'type', 'keys', 'created', 'banned'] as const
    await writeObjects(columns, rows, values.format as RowFormat, terminal.stdout)
    return EXIT.done
  },
}

const agentsBan: Command = {
  name: 'agents ban',
  summary: 'Refuse an agent’s submissions, permanently or until a time; it can still read',
  operands: [AGENT],
  options: {
    until: {
      value: 'TIME',
      description: 'Date or time in UTC, such as 2026-01-31T12:00:00Z; without it the ban is permanent',
    },
    reason: { value: 'TEXT', description: 'Kept with the ban' },
    url: URL_OPTION,
  },
  notes: [NEEDS_KEY],
  async run(values, terminal) {
    const { AGENT: agentId, reason } = values
    const untilMs = moment(values, 'until')
    await tell(values, terminal, '/api/v1/admin/ban', { agentId, untilMs, reason })
    const until = untilMs === null ? 'for good' : `until ${time(untilMs)}`
    await write(terminal.stdout, `${agentId} is banned ${until}\n`)
    return EXIT.done
  },
}

const agentsUnban: Command = {
  name: 'agents unban',
  summary: 'Lift a ban or a suspension',
  operands: [AGENT],
  options: { url: URL_OPTION },
  notes: [NEEDS_KEY],
  async run(values, terminal) {
    await tell(values, terminal, '/api/v1/admin/unban', { agentId: values.AGENT })
    await write(terminal.stdout, `${values.AGENT} may submit\n`)
    return EXIT.done
  },
}

const xpAward: Command = {
  name: 'xp award',
  summary: 'Award experience points for what is not evaluated: trades, chats, social, streaming',
  operands: [AGENT],
  options: {
    kind: {
      value: 'KIND',
      isRequired: true,
      allowed: AWARDED_KINDS,
      description: 'What the points are for',
    },
    times: { value: 'COUNT', otherwise: '1', description: 'How many trades, queries, enrichments or hours' },
    note: { value: 'TEXT', description: 'Kept in the ledger' },
    url: URL_OPTION,
  },
  notes: [NEEDS_KEY],
  async run(values, terminal) {
    const { AGENT: agentId, kind, note } = values
    const times = wholeNumber(values, 'times', 1)
    const { xpEarned, xpTotal } = await tell<{ xpEarned: number; xpTotal: number }>(
      values,
      terminal,
      '/api/v1/admin/xp',
      { agentId, kind, times, note },
    )
    await write(terminal.stdout, `${agentId} earned ${xpEarned} XP and has ${xpTotal}\n`)
    return EXIT.done
  },
}

export const OPERATOR_COMMANDS: readonly Command[] = [
  keysMake,
  keysList,
  keysRevoke,
  agentsList,
  agentsBan,
  agentsUnban,
  xpAward,
]
