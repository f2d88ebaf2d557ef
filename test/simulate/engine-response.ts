// An answer as the HTTP engine takes it, without a connection: it is kept here until its client takes it, chunk by chunk, and is made no
// faster than that.
import type { EngineResponse } from '../../src/http/engine.ts'

const HEADER_LINE = /^([^:]+): ?(.*)$/s

export class SimulatedResponse implements EngineResponse {
  /** 0: there is no answer yet. */
  status = 0
  /** By name, as they are written; without those that the engine adds. */
  readonly headers: [string, string][] = []
  /** Whether nothing is added any more: it is whole, or was cut. */
  isEnded = false
  /** Whether it was given up before its end, on either side. */
  isCut = false
  /** Called when there is more of it, and at its end. */
  onProgress: () => void = () => {}
  readonly #roomBytes: number
  readonly #client: string
  #body: Uint8Array | null
  #waiting: Buffer[] = []
  #waitingBytes = 0
  /** Bytes of its body so far. */
  #offset = 0
  #isFull = false
  #onAborted: () => void = () => {}
  #onWritable: (offset: number) => boolean = () => true

  /**
   * @param body of the request
   * @param roomBytes of the answer that wait here before it is to be taken
   * @param client its address
   */
  constructor(body: Uint8Array, roomBytes: number, client: string) {
    this.#body = body
    this.#roomBytes = roomBytes
    this.#client = client
  }

  /** Bytes that wait to be taken. */
  get waitingBytes(): number {
    return this.#waitingBytes
  }

  /** Takes up to that many of the bytes that wait; then more of the answer is made. */
  take(bytesMax: number): Buffer {
    const all = this.#waiting.length === 1 ? this.#waiting[0]! : Buffer.concat(this.#waiting)
    const taken = all.subarray(0, bytesMax)
    this.#waiting = all.length > bytesMax ? [all.subarray(bytesMax)] : []
    this.#waitingBytes = all.length - taken.length
    if (this.#isFull && !this.isEnded && this.#waitingBytes < this.#roomBytes) {
      this.#isFull = false
      this.#onWritable(this.#offset)
    }
    return taken
  }

  /** Nobody wants the answer any more. */
  abort(): void {
    if (this.isEnded) return
    this.isCut = true
    this.#finish()
    this.#onAborted()
  }

  /** Also gives several headers in one value, each after a line end. */
  writeStatus(status: string | Uint8Array): void {
    const [line = '', ...headers] = asText(status).split('\r\n')
    this.status = Number.parseInt(line, 10)
    for (const header of headers) this.#addHeader(header)
  }

  writeHeader(name: string, value: string): void {
    for (const header of `${name}: ${value}`.split('\r\n')) this.#addHeader(header)
  }

  #addHeader(line: string): void {
    const [, name, value] = HEADER_LINE.exec(line) ?? []
    if (name !== undefined && value !== undefined) this.headers.push([name, value])
  }

  /** As the engine does, calls `take` after the handler of the request has returned. */
  onData(take: (chunk: ArrayBuffer, isLast: boolean) => void): void {
    queueMicrotask(() => {
      const body = this.#body
      this.#body = null
      if (body !== null && !this.isEnded) take(Uint8Array.from(body).buffer, true)
    })
  }

  onAborted(onAborted: () => void): void {
    this.#onAborted = onAborted
  }

  onWritable(onWritable: (offset: number) => boolean): void {
    this.#onWritable = onWritable
  }

  cork(act: () => void): void {
    act()
  }

  pause(): void {}

  resume(): void {}

  write(bytes: Uint8Array): boolean {
    this.#add(bytes)
    this.onProgress()
    return !this.#isFull
  }

  /** Takes as much as there is room for. */
  tryEnd(bytes: Uint8Array, totalBytes: number): [boolean, boolean] {
    if (this.#offset === 0) this.headers.push(['Content-Length', `${totalBytes}`])
    this.#add(bytes.subarray(0, Math.max(0, this.#roomBytes - this.#waitingBytes)))
    const isComplete = this.#offset >= totalBytes
    if (isComplete) this.#finish()
    else this.onProgress()
    return [!this.#isFull, isComplete]
  }

  end(body: Uint8Array): void {
    if (this.#offset === 0) this.headers.push(['Content-Length', `${body.length}`])
    this.#add(body)
    this.#finish()
  }

  endWithoutBody(): void {
    this.#finish()
  }

  getWriteOffset(): number {
    return this.#offset
  }

  close(): void {
    this.abort()
  }

  getRemoteAddress(): ArrayBuffer {
    return new ArrayBuffer(0)
  }

  getRemoteAddressAsText(): ArrayBuffer {
    return Uint8Array.from(Buffer.from(this.#client)).buffer
  }

  /** Adds a copy: who writes may use the memory again. */
  #add(bytes: Uint8Array): void {
    if (bytes.length === 0) return
    this.#waiting.push(Buffer.from(bytes))
    this.#waitingBytes += bytes.length
    this.#offset += bytes.length
    this.#isFull = this.#waitingBytes >= this.#roomBytes
  }

  #finish(): void {
    this.isEnded = true
    this.onProgress()
  }
}

const asText = (text: string | Uint8Array): string =>
  typeof text === 'string' ? text : Buffer.from(text.buffer, text.byteOffset, text.byteLength).toString()
