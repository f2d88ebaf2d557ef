// What every view is given, and what it gives back.
import type { TemplateResult } from 'lit-html'
import type { MintlakeClient } from '../client/index.ts'
import type { KnownGaps } from './gaps.ts'
import type { Live } from './live.ts'
import type { Route } from './router.ts'
import type { PageSession } from './session.ts'
import type { Sparklines } from './views/market/sparklines.ts'

export interface App {
  live: Live
  readonly session: PageSession
  /** Intervals in which events of the market may be missing. */
  readonly gaps: KnownGaps
  /** Those of the page: its lists share what is known and the budget. */
  readonly sparklines: Sparklines
  /** Calls with the key of this tab, or without one. */
  readonly client: MintlakeClient
  route: Route
  /** Draws the page at the next frame: somebody did something. */
  invalidate(): void
  /** Draws the page a few times a second at most: data came, perhaps a lot of it. */
  changed(): void
  /** The agent's key of this tab, or null. */
  readonly key: string | null
  setKey(key: string | null): void
  /** The server's own time, Unix ms, as far as it is known. */
  nowMs(): number
}

export interface View {
  title: string
  render(): TemplateResult
  /** The address changed, but is one of this view. @returns false to have the view made anew. */
  update?(route: Route): boolean
  /** Called after each frame in which the page was drawn. */
  drawn?(): void
  stop(): void
}

export type ViewClass = new (app: App) => View
