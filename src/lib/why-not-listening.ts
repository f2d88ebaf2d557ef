import { createServer } from 'node:net'
import { errorMessage, systemCode } from './error-text.ts'

/** The code of the error with which listening fails; null: the port is free. */
export const whyNotListening = (host: string, port: number): Promise<string | null> =>
  new Promise((resolve) => {
    const server = createServer()
    server.once('error', (error) => resolve(systemCode(error) || errorMessage(error)))
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(null)))
  })
