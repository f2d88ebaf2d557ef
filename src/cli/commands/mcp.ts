// `mcp`: gives a language model the API as tools, over the standard streams.
import { readFileSync } from 'node:fs'
import { CLIENT_ENV } from '../../config/client-env.ts'
import { SETTINGS } from '../../config/settings.ts'
import { errorMessage } from '../../lib/error-text.ts'
import { type Command, Failure, type Values } from '../command.ts'
import { DATA_DIR } from '../common.ts'
import { KEY_FILE_BYTES_MAX } from '../limits.ts'
import { URL_OPTION, urlOf } from '../server-client.ts'
import type { Terminal } from '../terminal.ts'

/** The agent's key; null where none was given. */
function keyOf(values: Values, { env }: Terminal): string | null {
  const path = values['key-file']
  if (!path) return env[CLIENT_ENV.key] || null
  let key: string
  try {
    key = readFileSync(path, 'utf8').trim()
  } catch (error) {
    throw new Failure(`the key file cannot be read: ${errorMessage(error)}`)
  }
  if (key.length > 0 && key.length <= KEY_FILE_BYTES_MAX) return key
  throw new Failure(`${path} holds no key`)
}

async function run(values: Values, terminal: Terminal): Promise<undefined> {
  const options = {
    baseUrl: urlOf(values, terminal),
    key: keyOf(values, terminal),
    dataDir: values['data-dir'] || terminal.env[SETTINGS.dataDir.env] || null,
    areText: values.text === 'true',
  }
  // Loaded here, so that other commands do not pay for it.
  const { serveMcp } = await import('../../mcp/serve.ts')
  const { stdin, stdout, stderr } = terminal
  const isReadable = await serveMcp(options, {
    stdin,
    stdout,
    onError: (error) => void stderr.write(`mintlake mcp: ${errorMessage(error)}\n`),
    onInterrupt: (act) => terminal.onInterrupt(act),
  })
  if (!isReadable) throw new Failure('a message has more than 1 MiB: nothing behind it can be read')
}

export const mcpCommand: Command = {
  name: 'mcp',
  summary: 'Give a language model the API as tools: an MCP server over the standard streams',
  options: {
    url: URL_OPTION,
    'key-file': {
      value: 'FILE',
      description: `File with the API key of an agent; without it ${CLIENT_ENV.key}; without both, reads only`,
    },
    text: { description: 'Answer as text too, for a program that gives its model no structured content' },
    'data-dir': {
      ...DATA_DIR,
      description: `${SETTINGS.dataDir.description}, for the tool sql, which is there only with it; ${SETTINGS.dataDir.env}`,
    },
  },
  run,
}
