// A server of documents over https that does to its readers what strangers do, with a certificate for some names.
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeAuthority, makeCertificate } from '../../cluster/access/certificates.ts'

export type Handle = (request: IncomingMessage, response: ServerResponse) => void

const NAMES = ['documents', 'inside', 'both', 'rebinding', 'many', 'other']
  .map((name) => `DNS:${name}.example`)
  .join()

export class DocumentServer {
  readonly requests: { host: string; path: string; authorization: string | undefined }[] = []
  readonly paths = new Map<string, Handle>()
  connections = 0
  readonly ca: string
  readonly port: number
  readonly #server: Server

  private constructor(server: Server, ca: string) {
    this.#server = server
    this.ca = ca
    this.port = (server.address() as AddressInfo).port
    server.on('connection', () => {
      this.connections++
    })
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      const { host = '', authorization } = request.headers
      this.requests.push({ host, path: `${request.url}`, authorization })
      response.on('error', () => {})
      const handle = this.paths.get(`${request.url}`)
      if (handle === undefined) response.writeHead(404).end()
      else handle(request, response)
    })
  }

  static async start(): Promise<DocumentServer> {
    const folder = mkdtempSync(join(tmpdir(), 'mintlake-documents-'))
    try {
      makeAuthority(folder, 'authority')
      makeCertificate(folder, 'server', 'authority', NAMES)
      const [key, cert, ca] = ['server.key', 'server.crt', 'authority.crt'].map((name) =>
        readFileSync(join(folder, name), 'utf8'),
      )
      const server = createServer({ key, cert })
      server.listen(0, '127.0.0.1')
      await once(server, 'listening')
      return new DocumentServer(server, ca)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  }

  url(path: string, host = 'documents.example'): string {
    return `https://${host}:${this.port}${path}`
  }

  /** Answers a path with a document. */
  serve(path: string, document: unknown): void {
    this.paths.set(path, (_, response) => response.end(JSON.stringify(document)))
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }
}
