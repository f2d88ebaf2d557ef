// What is used of the HTTP engine: requests and responses of connections.

export interface EngineRequest {
  /** In lower case. */
  getMethod(): string
  getUrl(): string
  /** Without its question mark; undefined: there is none. */
  getQuery(): string | undefined
  /** @param take gets the names in lower case */
  forEach(take: (name: string, value: string) => void): void
}

/** As the engine's own `HttpResponse`, of which these are the parts. */
export interface EngineResponse {
  writeStatus(status: string | Uint8Array): unknown
  writeHeader(name: string, value: string): unknown
  onData(take: (chunk: ArrayBuffer, isLast: boolean) => void): unknown
  onAborted(onAborted: () => void): unknown
  onWritable(onWritable: (offset: number) => boolean): unknown
  cork(act: () => void): unknown
  pause(): void
  resume(): void
  /** @returns whether there is room for more */
  write(bytes: Uint8Array): boolean
  /** @returns whether there is room for more, and whether the body is complete */
  tryEnd(bytes: Uint8Array, totalBytes: number): [boolean, boolean]
  end(body: Uint8Array, closesConnection?: boolean): unknown
  endWithoutBody(): unknown
  /** Bytes of the body that were taken so far. */
  getWriteOffset(): number
  close(): unknown
  getRemoteAddress(): ArrayBuffer
  getRemoteAddressAsText(): ArrayBuffer
}

export type Handler = (res: EngineResponse, req: EngineRequest) => void
