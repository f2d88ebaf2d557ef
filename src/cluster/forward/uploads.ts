// Bodies of forwarded requests, and parts of those that are too large for one message, with a bound for all of them together.
import { CALL_BODIES_BYTES_MAX, CALL_IDLE_MS_MAX } from './limits.ts'

interface Upload {
  parts: Uint8Array[]
  bytes: number
  atMs: number
}

export class Bodies {
  readonly #uploads = new Map<string, Upload>()
  #bytes = 0

  get heldBytes(): number {
    return this.#bytes
  }

  /** Whether there is memory for a body of that size. It must be released. */
  take(bytes: number): boolean {
    if (this.#bytes + bytes > CALL_BODIES_BYTES_MAX) return false
    this.#bytes += bytes
    return true
  }

  release(bytes: number): void {
    this.#bytes -= bytes
  }

  /** Keeps a part, a copy. @returns false where there is no memory for it, or where the parts before it are missing */
  addPart(call: string, at: number, bytes: Uint8Array): boolean {
    const upload = this.#uploads.get(call) ?? { parts: [], bytes: 0, atMs: 0 }
    upload.atMs = performance.now()
    // The reply was lost: it is there already.
    if (at < upload.parts.length) return true
    if (at > upload.parts.length || !this.take(bytes.length)) return false
    upload.parts.push(Uint8Array.from(bytes))
    upload.bytes += bytes.length
    this.#uploads.set(call, upload)
    return true
  }

  /** The body whose parts were kept; null: there are none. Its bytes stay taken. */
  claim(call: string): Buffer | null {
    const upload = this.#uploads.get(call)
    if (upload === undefined) return null
    this.#uploads.delete(call)
    return Buffer.concat(upload.parts)
  }

  /** Gives up the parts of a request that does not come. */
  drop(call: string): void {
    const upload = this.#uploads.get(call)
    if (upload !== undefined) this.release(upload.bytes)
    this.#uploads.delete(call)
  }

  dropIdle(nowMs: number): void {
    for (const [call, { atMs }] of this.#uploads) if (nowMs - atMs > CALL_IDLE_MS_MAX) this.drop(call)
  }
}
