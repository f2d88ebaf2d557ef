import { startServer } from '../../../src/http/server.ts'

const SUBMIT_PATH = '/api/v1/analysis/submit'

/** The server, which calls `onAnswered` when a submission is stored and its answer is made, and sends that once it resolves. */
export const answering =
  (onAnswered: () => Promise<void>): typeof startServer =>
  (host, port, deps) => {
    const routes = deps.routes.map((route) => {
      if (route.access !== 'agent' || route.path !== SUBMIT_PATH) return route
      const handle: typeof route.handle = async (context) => {
        const answer = await route.handle(context)
        if (answer.status === 201) await onAnswered()
        return answer
      }
      return { ...route, handle }
    })
    return startServer(host, port, { ...deps, routes })
  }
