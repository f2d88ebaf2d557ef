// The connection to NATS, and the names of what is on it.

import { readFileSync } from 'node:fs'
import { type JetStreamClient, type JetStreamManager, jetstream, jetstreamManager } from '@nats-io/jetstream'
import {
  connect,
  credsAuthenticator,
  type NatsConnection,
  type NodeConnectionOptions,
} from '@nats-io/transport-node'
import type { Log } from '../lib/log.ts'
import { connectError, isTls, payloadTrouble } from './bus-errors.ts'
import { ConnectionWatch } from './connection-watch.ts'
import { BUS_CALL_MS_MAX, RETRY_MS_MAX } from './limits.ts'
import type { BusSettings } from './settings.ts'

/** Names on the bus. */
export const busNames = (name: string) => ({
  stream: `${name}-events`,
  subject: `${name}.events`,
  checkpoints: `${name}-checkpoints`,
  accounts: `${name}-accounts`,
  writer: `${name}.writer`,
  list: (list: string) => `${name}.list.${list}`,
})
export type BusNames = ReturnType<typeof busNames>

export interface Bus {
  names: BusNames
  connection: NatsConnection
  client: JetStreamClient
  manager: JetStreamManager
  watch: ConnectionWatch
  /** Ends the connection; what was sent before is delivered first. Never rejects. */
  close(): Promise<void>
}

/**
 * Connects, and stays connected: whenever the connection is lost it is made again, without end. Rejects where no server can be reached
 * now, where it refuses this process or messages as large as those of a cluster, with a sentence that says why, or where it has no JetStream.
 * @param nodeName shown in the server's list of connections
 * @param log told of each thing that the bus does not permit, once
 * @param callMsMax how long a call may take
 */
export async function connectBus(
  settings: BusSettings,
  nodeName: string,
  log?: Log,
  callMsMax = BUS_CALL_MS_MAX,
): Promise<Bus> {
  const connection = await connect(connectOptions(settings, nodeName)).catch((error: unknown) => {
    throw connectError(error, settings)
  })
  const watch = new ConnectionWatch(connection, (sentence) => log?.error({}, sentence))
  try {
    const trouble = payloadTrouble(connection.info?.max_payload)
    if (trouble !== null) throw new Error(trouble)
    const options = { timeout: callMsMax }
    const manager = await jetstreamManager(connection, options)
    const client = jetstream(connection, options)
    return {
      names: busNames(settings.name),
      connection,
      client,
      manager,
      watch,
      close: () => connection.close().catch(() => undefined),
    }
  } catch (error) {
    await connection.close().catch(() => undefined)
    throw error
  }
}

/**
 * A server is dialed again RETRY_MS_MAX after it was dialed before, by the monotonic clock. The client itself would count by the wall clock, and
 * stay away for as long as that is set back.
 */
function dialTimes(): Pick<NodeConnectionOptions, 'reconnectDelayHandler' | 'reconnectToServer'> {
  const dialedAtMs = new Map<string, number>()
  return {
    reconnectDelayHandler: () => Number.NEGATIVE_INFINITY,
    reconnectToServer: ([server]) => {
      if (server === undefined) return null
      const nowMs = performance.now()
      const dueMs = Math.max(
        nowMs,
        (dialedAtMs.get(server.listen) ?? Number.NEGATIVE_INFINITY) + RETRY_MS_MAX,
      )
      dialedAtMs.set(server.listen, dueMs)
      return { server, delay: dueMs - nowMs }
    },
  }
}

/** Files are read at each call: certificates and credentials may have been renewed. */
function connectOptions(settings: BusSettings, nodeName: string): NodeConnectionOptions {
  const { user, credentials, ca, cert, key } = settings.login
  return {
    servers: [...settings.servers],
    name: nodeName,
    maxReconnectAttempts: -1,
    ...dialTimes(),
    // Credentials may be put right while this process runs.
    ignoreAuthErrorAbort: true,
    timeout: BUS_CALL_MS_MAX,
    // A stack for each request, in case it fails, would be a seventh of a reader's time.
    noAsyncTraces: true,
    // A connection that swallows everything is found out within six seconds.
    pingInterval: 2_000,
    maxPingOut: 2,
    // Its replies come to an inbox that no other user may read.
    ...(user !== '' && { user, pass: settings.password, inboxPrefix: `_INBOX.${user}` }),
    ...(credentials !== '' && { authenticator: credsAuthenticator(readFileSync(credentials)) }),
    ...(isTls(settings) && {
      tls: {
        ...(ca !== '' && { caFile: ca }),
        ...(cert !== '' && { certFile: cert, keyFile: key }),
      },
    }),
  }
}
