// Commands for keys, agents, bans and XP. They use the admin endpoints of a running server, which alone writes to the store.
import type { z } from 'zod'
import { registeredSchema } from '../../schema/api/accounts.ts'
import {
  agentListSchema,
  type agentStatusSchema,
  awardAnswerSchema,
  bannedSchema,
  keysRevokedSchema,
} from '../../schema/api/admin.ts'
import { AGENT_TYPES } from '../../schema/vocabulary.ts'
import { AWARDED_KINDS } from '../../schema/xp.ts'
import { type Command, Failure, type Values, wordValue } from '../command.ts'
import { counted, moment, numberOption, wholeNumber } from '../common.ts'
import { ROW_FORMAT, ROW_FORMATS, writeObjects } from '../rows.ts'
import { type AnswerSchema, askAsOperator, URL_OPTION } from '../server-client.ts'
import { type Terminal, write } from '../terminal.ts'

const AGENT = { name: 'AGENT', description: 'its identity, ag_…, as in mintlake agents list' }

/** A command that the server carries out for its operator. */
const asOperator = ({ options, notes = [], ...command }: Command): Command => ({
  ...command,
  options: { ...options, url: URL_OPTION },
  notes: ['The server’s MINTLAKE_ADMIN_KEY must be in the environment.', ...notes],
})

type ShownAgent = z.infer<typeof agentStatusSchema>

const fetchAgents = (values: Values, terminal: Terminal): Promise<ShownAgent[]> =>
  askAsOperator(values, terminal, agentListSchema, { path: '/api/v1/admin/agents' })

/** Posts the members of `body` that are neither null nor ''. Resolves with the data of the response. */
function post<Schema extends AnswerSchema>(
  values: Values,
  terminal: Terminal,
  schema: Schema,
  path: string,
  body: Record<string, string | number | null | undefined>,
): Promise<z.output<Schema>['data']> {
  const given = Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null && value !== ''))
  return askAsOperator(values, terminal, schema, { path, body: given })
}

const time = (ms: number): string => new Date(ms).toISOString()

function makeBan({ banned, bannedUntilMs }: ShownAgent): string | null {
  if (!banned) return null
  return bannedUntilMs === null ? 'for good' : `until ${time(bannedUntilMs)}`
}

/** A key without an expiry is valid. */
const keyRow = (agent: ShownAgent, { prefix, createdAtMs, expiresAtMs }: ShownAgent['keys'][number]) => ({
  agent: agent.agentId,
  name: agent.name,
  key: prefix,
  created: time(createdAtMs),
  ends: expiresAtMs === null ? null : time(expiresAtMs),
})

const agentRow = (agent: ShownAgent) => ({
  agent: agent.agentId,
  name: agent.name,
  type: agent.type,
  keys: agent.keys.filter(({ expiresAtMs }) => expiresAtMs === null).length,
  created: time(agent.createdAtMs),
  banned: makeBan(agent),
})

const keysMake = asOperator({
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
  },
  notes: ['The key alone goes to the standard output: key=$(mintlake keys make scout)'],
  async run(values, terminal) {
    const { NAME: name, type, description } = values
    const made = await post(values, terminal, registeredSchema, '/api/v1/admin/keys', {
      name,
      type,
      description,
    })
    await write(terminal.stdout, `${made.key}\n`)
    await write(terminal.stderr, `agent ${made.agentId}; the key is shown this once\n`)
  },
})

const keysList = asOperator({
  name: 'keys list',
  summary: 'List every key by agent: its first characters and its expiry',
  options: { format: ROW_FORMAT },
  async run(values, terminal) {
    const agents = await fetchAgents(values, terminal)
    const rows = agents.flatMap((agent) => agent.keys.map((key) => keyRow(agent, key)))
    const columns = ['agent', 'name', 'key', 'created', 'ends'] as const
    await writeObjects(columns, rows, wordValue(values, 'format', ROW_FORMATS), terminal.stdout)
  },
})

const keysRevoke = asOperator({
  name: 'keys revoke',
  summary: 'Revoke all keys of an agent, or one of them',
  operands: [AGENT],
  options: {
    key: { value: 'PREFIX', description: 'Only the key that mintlake keys list shows with this prefix' },
  },
  async run(values, terminal) {
    const { AGENT: agentId, key: prefix } = values
    const { revoked } = await post(values, terminal, keysRevokedSchema, '/api/v1/admin/revoke', {
      agentId,
      prefix,
    })
    if (revoked === 0)
      throw new Failure(`${agentId} has no ${prefix === '' ? 'key' : `key ${prefix}`} in force`)
    await write(terminal.stdout, `${counted(revoked, 'key')} revoked\n`)
  },
})

const agentsList = asOperator({
  name: 'agents list',
  summary: 'List every agent, and whether it is banned',
  options: { format: ROW_FORMAT },
  async run(values, terminal) {
    const rows = (await fetchAgents(values, terminal)).map(agentRow)
    const columns = ['agent', 'name', 'type', 'keys', 'created', 'banned'] as const
    await writeObjects(columns, rows, wordValue(values, 'format', ROW_FORMATS), terminal.stdout)
  },
})

const agentsBan = asOperator({
  name: 'agents ban',
  summary: 'Refuse an agent’s submissions, permanently or until a time; it can still read',
  operands: [AGENT],
  options: {
    until: {
      value: 'TIME',
      description: 'Date or time in UTC, such as 2026-01-31T12:00:00Z; without it the ban is permanent',
    },
    reason: { value: 'TEXT', description: 'Kept with the ban' },
  },
  async run(values, terminal) {
    const { AGENT: agentId, reason } = values
    const untilMs = moment(values, 'until')
    await post(values, terminal, bannedSchema, '/api/v1/admin/ban', { agentId, untilMs, reason })
    const until = untilMs === null ? 'for good' : `until ${time(untilMs)}`
    await write(terminal.stdout, `${agentId} is banned ${until}\n`)
  },
})

const agentsUnban = asOperator({
  name: 'agents unban',
  summary: 'Lift a ban or a suspension',
  operands: [AGENT],
  options: {},
  async run(values, terminal) {
    await post(values, terminal, bannedSchema, '/api/v1/admin/unban', { agentId: values.AGENT })
    await write(terminal.stdout, `${values.AGENT} may submit\n`)
  },
})

const xpAward = asOperator({
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
    times: numberOption('COUNT', 1, 'How many trades, queries, enrichments or hours'),
    note: { value: 'TEXT', description: 'Kept in the ledger' },
  },
  async run(values, terminal) {
    const { AGENT: agentId, kind, note } = values
    const times = wholeNumber(values, 'times', 1)
    const award = { agentId, kind, times, note }
    const { xpEarned, xpTotal } = await post(values, terminal, awardAnswerSchema, '/api/v1/admin/xp', award)
    await write(terminal.stdout, `${agentId} earned ${xpEarned} XP and has ${xpTotal}\n`)
  },
})

export const OPERATOR_COMMANDS: readonly Command[] = [
  keysMake,
  keysList,
  keysRevoke,
  agentsList,
  agentsBan,
  agentsUnban,
  xpAward,
]
