// Calls and subscriptions of a server elsewhere, as `fetch` and the package `ws` show them: over connections of the simulated network. A message
// of a call is its request, or its answer; one of a subscription has a letter in front that says what it is.
import { EventEmitter } from 'node:events'
import { readMessage, sendMessage } from './http-request.ts'
import type { ConnectionEnd, Network } from './network.ts'

/** An answer to a call. */
export interface CallAnswer {
  status: number
  headers: Readonly<Record<string, string>>
  text: string
}

/** What a message of a subscription is. */
export const FRAME = { text: 't', binary: 'b', ping: 'p', pong: 'o' } as const
export const frameOf = (kind: keyof typeof FRAME, text = ''): Buffer => Buffer.from(FRAME[kind] + text)

interface Call {
  method: string
  headers: Readonly<Record<string, string>>
  body: string
  signal: AbortSignal
}

/** As far as callers read it. */
const responseOf = ({ status, headers, text }: CallAnswer) => ({
  ...{ status, ok: status >= 200 && status < 300, headers: new Headers(headers) },
  body: (async function* () {
    yield Buffer.from(text)
  })(),
})

export const simulatedFetch =
  (network: () => Network) =>
  (address: string, { method, headers, body, signal }: Call): Promise<unknown> =>
    new Promise((resolve, reject) => {
      const { port, pathname } = new URL(address)
      let connection: ConnectionEnd | null = null
      const fail = (reason: unknown): void => {
        connection?.close()
        reject(reason)
      }
      signal.addEventListener('abort', () => fail(signal.reason))
      network().connect(Number(port), (end) => {
        connection = end
        if (end === null || signal.aborted) {
          fail(signal.aborted ? signal.reason : new TypeError('fetch failed: connect ECONNREFUSED'))
          return
        }
        end.onBytes = (bytes) => {
          resolve(responseOf(readMessage<CallAnswer>(bytes)))
          end.close()
        }
        end.onClose = () => fail(new TypeError('fetch failed: read ECONNRESET'))
        const sent = Buffer.from(body).toString('base64')
        sendMessage(end, { method, target: pathname, headers, body: sent })
      })
    })

export class SimulatedWebSocket extends EventEmitter {
  static readonly CONNECTING = 0
  static readonly OPEN = 1
  static readonly CLOSED = 3
  readyState: number = SimulatedWebSocket.CONNECTING
  readonly bufferedAmount = 0
  readonly #network: Network
  #end: ConnectionEnd | null = null

  constructor(network: Network, address: string) {
    super()
    this.#network = network
    network.connect(Number(new URL(address).port), (end) => {
      if (end === null) {
        this.emit('error', new Error('connect ECONNREFUSED'))
        this.terminate()
        return
      }
      if (this.readyState === SimulatedWebSocket.CLOSED) {
        end.close()
        return
      }
      this.#end = end
      end.onBytes = (bytes) => this.#take(bytes.toString())
      end.onClose = () => this.terminate()
      this.readyState = SimulatedWebSocket.OPEN
      this.emit('open')
    })
  }

  #take(message: string): void {
    if (this.readyState !== SimulatedWebSocket.OPEN) return
    const [kind, text] = [message[0], message.slice(1)]
    if (kind === FRAME.pong) this.emit('pong')
    else this.emit('message', Buffer.from(text), kind === FRAME.binary)
  }

  send(text: string): void {
    this.#end?.send(frameOf('text', text))
  }

  ping(): void {
    this.#end?.send(frameOf('ping'))
  }

  terminate(): void {
    if (this.readyState === SimulatedWebSocket.CLOSED) return
    this.readyState = SimulatedWebSocket.CLOSED
    this.#end?.close()
    this.#network.machine.queue(() => void this.emit('close', 1_006))
  }
}
