// Nodes of a cluster as processes of their own on the real nats-server, with a proxy in between that can lose everything.
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import {
  clearNatsServer,
  hasNatsServer,
  type NatsServer,
  type NatsServerOptions,
  startNatsServer,
} from '../../scripts/nats-server.ts'
import type { BusSettings } from '../../src/cluster/settings.ts'
import { readConfig } from '../../src/config/config.ts'
import { freePort } from '../support/free-port.ts'
import {
  type LaunchedServer,
  launchServer,
  type ServerProcess,
  type Settings,
  temporaryFolder,
  untilReady,
} from '../support/test-server.ts'

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

/** Whether nats-server can be run here. */
export const hasNats = hasNatsServer()
/** For titles: `describe.skipIf(!hasNats)(\`readers${skipped}\`, …)`. */
export const skipped = hasNats ? '' : ' (needs nats-server)'

/** Of a process that NATS knows nothing of. */
export const busSettingsOf = (url: string, name = 'mintlake'): BusSettings => ({
  ...readConfig(['--role', 'writer', '--bus', url], {}).bus,
  name,
})

export interface Nats {
  /** Stays the same over restarts. */
  readonly url: string
  readonly port: number
  readonly server: NatsServer
  /** Ends it by SIGKILL. */
  kill(): Promise<void>
  /** Ends it by SIGTERM. */
  stop(): Promise<void>
  /** Starts it again on its port. `keepData: false` forgets all streams, as a lost disk does. */
  start(how?: { keepData?: boolean } & NatsOptions): Promise<void>
  /** Ends it and removes its folder. */
  remove(): Promise<void>
}

export type NatsOptions = Partial<Omit<NatsServerOptions, 'detached'>>

/** The real nats-server on a free port. */
export async function startNats(options: NatsOptions = {}): Promise<Nats> {
  const dir = options.dir ?? temporaryFolder()
  let server = await startNatsServer({ ...options, dir })
  const { port, url } = server
  return {
    ...{ port, url },
    get server() {
      return server
    },
    kill: () => server.kill(),
    stop: () => server.stop(),
    start: async ({ keepData = true, ...changed } = {}) => {
      await server.kill()
      if (!keepData) clearNatsServer(dir)
      server = await startNatsServer({ ...options, ...changed, dir, port })
    },
    remove: async () => {
      await server.kill()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

export interface BusProxy {
  /** For `--bus` of the node behind it. */
  readonly url: string
  /** Loses everything in both directions from now on, and keeps connections open: a network that swallows. */
  swallow(): void
  /** Ends all connections and refuses new ones: a network that says no. */
  cut(): void
  /** Carries again. Connections that have lost something are ended, since no network loses the middle of one. */
  heal(): void
  close(): Promise<void>
}

/** A proxy before the bus at `port`. */
export async function startProxy(port: number): Promise<BusProxy> {
  let state: 'open' | 'swallowing' | 'cut' = 'open'
  /** Both ends of each connection. */
  const sockets = new Set<Socket>()
  const endAll = () => {
    for (const socket of sockets) socket.destroy()
    sockets.clear()
  }
  const carry = (from: Socket, to: Socket | null) => {
    sockets.add(from)
    from.on('data', (bytes) => {
      if (state === 'open') to?.write(bytes)
    })
    from.on('error', () => undefined)
    from.on('close', () => {
      sockets.delete(from)
      if (state === 'open') to?.destroy()
    })
  }
  const server = createServer((client) => {
    if (state === 'cut') {
      client.destroy()
      return
    }
    if (state === 'swallowing') {
      carry(client, null)
      return
    }
    const bus = connect(port, '127.0.0.1')
    carry(client, bus)
    carry(bus, client)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `nats://127.0.0.1:${(server.address() as AddressInfo).port}`,
    swallow: () => {
      state = 'swallowing'
    },
    cut: () => {
      state = 'cut'
      endAll()
    },
    heal: () => {
      if (state !== 'open') endAll()
      state = 'open'
    },
    close: async () => {
      endAll()
      server.close()
      await once(server, 'close')
    },
  }
}

/** Settings that make a fault last a second where it lasts five in service. */
const READER_DEFAULTS: Settings = { role: 'reader', reader: 'lag-max-ms=1000' }
const WRITER_DEFAULTS: Settings = { role: 'writer', 'bus-stream': 'max-mb=256' }

export interface NodeOptions {
  /** A folder of before; else a new one. */
  dataDir?: string
  env?: Record<string, string>
  /** Arguments of Node before the program. */
  nodeFlags?: readonly string[]
}

/** Servers that keep streams together. */
export async function startNatsMembers(count: number): Promise<Nats[]> {
  const ports: number[] = []
  for (let index = 0; index < count; index++) ports.push(await freePort())
  const start = (port: number, index: number) =>
    startNats({ member: { name: `server-${index}`, port, others: ports.filter((other) => other !== port) } })
  return Promise.all(ports.map(start))
}

/** NATS, and the processes of one cluster. All of them end with `remove()`. */
export class TestCluster {
  readonly nats: Nats
  /** Where NATS is several servers: the others. */
  readonly otherNats: readonly Nats[]
  readonly #nodes = new Set<LaunchedServer>()
  readonly #folders: string[] = []

  constructor(nats: Nats, otherNats: readonly Nats[] = []) {
    this.nats = nats
    this.otherNats = otherNats
  }

  /** For `--bus`. */
  get bus(): string {
    return [this.nats, ...this.otherNats].map(({ url }) => url).join(',')
  }

  static async start(options: NatsOptions = {}): Promise<TestCluster> {
    return new TestCluster(await startNats(options))
  }

  /** Starts a writer, on the folder of an earlier one or on a new one. Resolves when it is ready. */
  writer(settings: Settings = {}, options: NodeOptions = {}): Promise<ServerProcess> {
    return untilReady(this.launch({ ...WRITER_DEFAULTS, ...settings }, options))
  }

  /** Starts a reader with a folder of its own. Resolves when it is ready: it has caught up. */
  reader(settings: Settings = {}, options: NodeOptions = {}): Promise<ServerProcess> {
    return untilReady(this.launch({ ...READER_DEFAULTS, ...settings }, options))
  }

  /** Starts a node and waits for nothing. */
  launch(settings: Settings, { dataDir, env, nodeFlags = [] }: NodeOptions = {}): LaunchedServer {
    const folder = dataDir ?? temporaryFolder()
    if (dataDir === undefined) this.#folders.push(folder)
    const program = [...nodeFlags, MAIN]
    const node = launchServer({ bus: this.bus, ...settings }, folder, env, [], program)
    this.#nodes.add(node)
    return node
  }

  /** Kills every process and removes every folder. */
  async remove(): Promise<void> {
    for (const node of this.#nodes) await node.kill()
    for (const nats of [this.nats, ...this.otherNats]) await nats.remove()
    for (const folder of this.#folders) rmSync(folder, { recursive: true, force: true })
  }
}

/** Stops the scheduling of a process (SIGSTOP) until the answer is called. */
export function freeze(node: ServerProcess): () => void {
  node.process.kill('SIGSTOP')
  return () => void node.process.kill('SIGCONT')
}
