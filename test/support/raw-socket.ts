// A plain TCP connection to a server, for requests that no HTTP library would send.
import { connect, type Socket } from 'node:net'

/** One connection, and all that came over it. */
export class RawSocket {
  readonly socket: Socket
  /** All that the server said. */
  text = ''
  /** What ended it: an error's code, or `end` for a plain close; null while it is open. */
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

  /** Writes, and resolves once the kernel has taken it. */
  write(bytes: string | Uint8Array): Promise<void> {
    return new Promise((resolve) => this.socket.write(bytes, () => resolve()))
  }

  /** Resolves when `isTrue` of what has happened so far. */
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
