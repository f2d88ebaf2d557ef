import { createServer } from 'node:net'
import { errorMessage, systemCode } from './error-text.ts'

/** The code of the error with which listening fails; null: the port is free. */
export const whyNotListening = (host: string, port: number): Promise<string | null> =>
  new Promise((resolve) => {
    const server = createServer()
    server.once('error', (error) => resolve(systemCode(error) || errorMessage(error)))
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(null)))
  })

/** What keeps a program from listening, by the code of the system. */
const LISTEN_FAULTS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another program listens there',
  EADDRNOTAVAIL: 'that is no address of this machine',
  EACCES: 'that port needs privileges',
  ENOTFOUND: 'there is no host of that name',
  EAI_AGAIN: 'the name of that host cannot be looked up',
}

/** A sentence that says why the port cannot be used; null: it can. */
export async function portFault(host: string, port: number): Promise<string | null> {
  const code = await whyNotListening(host, port)
  return code === null ? null : `port ${port} on ${host} cannot be used: ${LISTEN_FAULTS[code] ?? code}`
}

/** A server listens once its market is there, which takes seconds: a port that it cannot have is told before. 0 is any.
 *  @throws Error */
export async function requirePort(host: string, port: number): Promise<void> {
  const fault = port === 0 ? null : await portFault(host, port)
  if (fault !== null) throw new Error(fault)
}
