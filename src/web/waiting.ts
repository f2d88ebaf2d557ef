// What a view shows before its first data came: why, and that it goes on by itself.
import { html, type TemplateResult } from 'lit-html'
import { emptyState } from './dom.ts'
import type { Live } from './live.ts'

/** Seconds until the next attempt, at least 0. */
export const secondsUntil = (atMs: number | null): number =>
  atMs === null ? 0 : Math.max(0, Math.ceil((atMs - Date.now()) / 1_000))

export function waitingState({ state, retryAtMs }: Live): TemplateResult {
  const again = `This page tries again by itself, in ${secondsUntil(retryAtMs)} s.`
  switch (state) {
    case 'connecting':
    case 'live':
      return html`<p class="note loading" role="status">Loading</p>`
    case 'warming':
      return emptyState('The server is warming up', `It fills its market first. ${again}`)
    case 'limited':
      return emptyState(
        'Too many reads',
        `Each address has a number of reads a minute, and they are used up. ${again}`,
      )
    case 'waiting':
      return emptyState('The server cannot be reached', `${again} If it is yours, start it:`, 'npm start')
  }
}
