// The MCP server: tools for language models, over the standard streams.
import type { Readable, Writable } from 'node:stream'
import { McpServer } from '@modelcontextprotocol/server'
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio'
import { createClient } from '../client/index.ts'
import { agentTools } from './agent-tools.ts'
import { MESSAGE_BYTES_MAX, RETRIES_MAX } from './limits.ts'
import { marketTools } from './market-tools.ts'
import { sqlTool } from './sql-tool.ts'
import { UNTRUSTED } from './tool.ts'

export interface McpOptions {
  /** The Mintlake server. */
  baseUrl: string
  /** API key of an agent; null: public reads only. */
  key: string | null
  /** Folder whose lake the tool `sql` reads; null: there is no such tool. */
  dataDir: string | null
  /** Answers are text too, for programs that give a model no structured content. */
  areText: boolean
}

const INSTRUCTIONS =
  'Mintlake serves market data of tokens and takes analyses of them. To earn XP: list_market with max_analyses 4, get_datapoint and ' +
  `get_bars of one token, then submit_analysis without a snapshot; my_analyses tells what became of them. ${UNTRUSTED}`

function createServer({ baseUrl, key, dataDir, areText }: McpOptions): McpServer {
  const client = createClient({ baseUrl, retriesMax: RETRIES_MAX, ...(key !== null && { key }) })
  const server = new McpServer({ name: 'mintlake', version: '1' }, { instructions: INSTRUCTIONS })
  const tools = [...marketTools(client), ...agentTools(client, key !== null)]
  if (dataDir !== null) tools.push(sqlTool(dataDir))
  const calls = { running: 0, areText }
  for (const add of tools) add(server, calls)
  return server
}

export interface Streams {
  stdin: Readable
  stdout: Writable
  /** Called with what went wrong on the connection. Nothing else may be written to `stdout`. */
  onError(error: Error): void
  /** Calls `act` when the process is told to stop. Returns a function that removes the handler. */
  onInterrupt(act: () => void): () => void
}

/**
 * Serves one client. Resolves when it has closed its stream, or the process is told to stop.
 * @returns false where a message was too large: nothing tells where the next one begins
 */
export async function serveMcp(
  options: McpOptions,
  { stdin, stdout, onError, onInterrupt }: Streams,
): Promise<boolean> {
  const transport = new StdioServerTransport(stdin, stdout, { maxBufferSize: MESSAGE_BYTES_MAX })
  const connection = serveStdio(() => createServer(options), { transport, onerror: onError })
  const isReadable = await new Promise<boolean>((resolve) => {
    const forget = onInterrupt(() => end(true))
    function end(isWell: boolean): void {
      forget()
      resolve(isWell)
    }
    const { onclose } = transport
    // It closes where one of the streams has ended, and by itself where a message is too large.
    transport.onclose = () => {
      onclose?.()
      end(stdin.readableEnded || stdin.destroyed || stdout.errored !== null)
    }
  })
  await connection.close()
  // Nobody reads it any more: what the client still sends would keep the process.
  stdin.destroy()
  return isReadable
}
