// A plain TCP connection to a server, for requests that no HTTP library would send.
import { connect, type Socket } from 'node:net'

/** One connection, and all bytes received over it. */
export class RawSocket {
  readonly socket: Socket
  /** All bytes received, as text. */
  text = ''
  /** How it ended: the code of an error, or `end` for a normal close. Null while it is open. */
  ended: string | null = null
  #changed: () => void = () => {}

  constructor(url: string) {
    const { hostname, port } = new URL(url)
    this.socket = connect(Number(port), hostname.replace(/^\[|\]$/g, ''))
    this.socket.setNoDelay(true)
    this.socket.on('data', (chunk) => {
      this.text += chunk
      this.#changed()
    })
    this.socket.on('error', (error: NodeJS.ErrnoException) => {
      this.ended ??= error.code ?? error.message
    })
    this.socket.on('close', () => {
      this.ended ??= 'end'
      this.#changed()
    })
  }

  /** Writes text or bytes. Resolves once the kernel has taken them. */
  write(bytes: string | Uint8Array): Promise<void> {
    return new Promise((resolve) => this.socket.write(bytes, () => resolve()))
  }

  /** Resolves when `isTrue` holds, or the connection has ended. */
  async until(isTrue: () => boolean): Promise<void> {
    while (!isTrue() && this.ended === null) {
      await new Promise<void>((resolve) => {
        this.#changed = resolve
      })
    }
  }

  /** The statuses of the answers so far. */
  get statuses(): number[] {
    return [...this.text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map((match) => Number(match[1]))
  }

  /** Waits for `count` answers, or the end of the connection. */
  async answers(count: number): Promise<number[]> {
    await this.until(() => this.statuses.length >= count)
    return this.statuses
  }

  close(): void {
    this.socket.destroy()
  }
}
