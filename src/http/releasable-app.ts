// The engine keeps the handlers that it was given, and so all that they reach, until the process ends. A process that starts one
// server after another, as tests do, would keep the markets of all.
import type { HttpRequest, HttpResponse, TemplatedApp, WebSocketBehavior } from 'uWebSockets.js'

type Handler = (res: HttpResponse, req: HttpRequest) => void

/** Registers handlers that can be let go of. */
export class ReleasableApp {
  readonly #app: TemplatedApp
  readonly #releases: (() => void)[] = []

  constructor(app: TemplatedApp) {
    this.#app = app
  }

  /** Lets go of all handlers. To be called when the engine is closed: it calls none of them any more. */
  release(): void {
    for (const release of this.#releases) release()
  }

  get(path: string, handler: Handler): void {
    this.#app.get(path, this.#releasable(handler))
  }

  any(path: string, handler: Handler): void {
    this.#app.any(path, this.#releasable(handler))
  }

  ws<UserData>(path: string, behavior: WebSocketBehavior<UserData>): void {
    let held: WebSocketBehavior<UserData> | null = behavior
    this.#releases.push(() => {
      held = null
    })
    this.#app.ws<UserData>(path, {
      ...behavior,
      upgrade: (res, req, context) => held?.upgrade?.(res, req, context),
      open: (ws) => held?.open?.(ws),
      message: (ws, message, isBinary) => held?.message?.(ws, message, isBinary),
      drain: (ws) => held?.drain?.(ws),
      close: (ws, code, message) => held?.close?.(ws, code, message),
    })
  }

  #releasable(handler: Handler): Handler {
    let held: Handler | null = handler
    this.#releases.push(() => {
      held = null
    })
    return (res, req) => held?.(res, req)
  }
}
