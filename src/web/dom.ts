// Small pieces that several views draw. Texts of tokens come from strangers: they are only ever written as text.
import { html, nothing, type TemplateResult } from 'lit-html'
import type { Fetched } from './api.ts'
import { formatAge, formatPercent } from './format.ts'
import type { Live } from './live.ts'
import { routeHref } from './router.ts'

/** The address of a link from a token, or null if it is not http(s). */
function safeUrl(text: string | null | undefined): string | null {
  if (!text) return null
  try {
    const url = new URL(text)
    return url.protocol === 'https:' || url.protocol === 'http:' ? url.href : null
  } catch {
    return null
  }
}

/** A link that a stranger wrote: opens outside, gives nothing away, and shows where it leads. */
export function untrustedLink(
  label: string,
  text: string | null | undefined,
): TemplateResult | typeof nothing {
  const url = safeUrl(text)
  return url === null
    ? nothing
    : html`<a href=${url} title=${url} target="_blank" rel="noopener noreferrer nofollow">${label} ↗</a>`
}

const SPARK_WIDTH = 96
const SPARK_HEIGHT = 28
const SPARK_PAD = 2

/** A line of prices, oldest first. */
export function sparkline(values: readonly number[]): TemplateResult | typeof nothing {
  if (values.length < 2) return nothing
  const [low, high] = [Math.min(...values), Math.max(...values)]
  const span = high - low || 1
  const step = (SPARK_WIDTH - 2 * SPARK_PAD) / (values.length - 1)
  const points = values.map((value, at) => {
    const y = SPARK_HEIGHT - SPARK_PAD - ((value - low) / span) * (SPARK_HEIGHT - 2 * SPARK_PAD)
    return `${(SPARK_PAD + at * step).toFixed(1)},${y.toFixed(1)}`
  })
  const isUp = (values.at(-1) ?? 0) >= (values[0] ?? 0)
  return html`<svg class="spark ${isUp ? 'up' : 'down'}" viewBox="0 0 ${SPARK_WIDTH} ${SPARK_HEIGHT}" aria-hidden="true"><polyline points=${points.join(' ')}></polyline></svg>`
}

/** Where a sparkline will be: of its size, and still. */
export const SPARKLINE_TO_COME = html`<svg class="spark to-come" viewBox="0 0 ${SPARK_WIDTH} ${SPARK_HEIGHT}" aria-hidden="true"><line x1=${SPARK_PAD} x2=${SPARK_WIDTH - SPARK_PAD} y1=${SPARK_HEIGHT / 2} y2=${SPARK_HEIGHT / 2}></line></svg>`

/** A share from 0 to 100 as a bar with its number beside it. */
export function meter(percent: number | null | undefined, label: string): TemplateResult {
  if (percent == null) return html`<span class="dim">–</span>`
  const text = formatPercent(percent, 0)
  const width = `${Math.min(100, Math.max(0, percent))}%`
  return html`<span class="meter" role="img" aria-label="${label} ${text.replace('%', ' percent')}"><i .style=${`width: ${width}`}></i></span><span class="meter-number" aria-hidden="true">${text}</span>`
}

/** What a view shows where there is nothing yet: a sentence, and the next step with commands to copy. */
export const emptyState = (
  title: string,
  text: string,
  ...commands: readonly string[]
): TemplateResult => html`
  <div class="empty" role="status">
    <h2>${title}</h2>
    <p>${text}</p>
    ${commands.map((command) => html`<p>${copyable(command)}</p>`)}
  </div>`

/** A table without links that may be wider than the screen: the keyboard, which has nothing to go to inside, scrolls the whole. */
export const wideTable = (label: string, table: TemplateResult): TemplateResult =>
  html`<div class="scroll-x" tabindex="0" role="region" aria-label=${label}>${table}</div>`

/** The addresses at which commands look for a server by themselves. */
const DEFAULT_ORIGINS: readonly string[] = ['http://127.0.0.1:8080', 'http://localhost:8080']

/** A flag with a space before it, for commands that ask this server: nothing where they find it by themselves. */
export const urlFlag = (): string =>
  DEFAULT_ORIGINS.includes(location.origin) ? '' : ` --url ${location.origin}`

/** Starts the example agent on this server. */
export const agentCommand = (): string =>
  urlFlag() === '' ? 'npm run agent' : `npm run agent --${urlFlag()}`

/** Starts another agent than that one: whoever has the same file with a key is the same agent. */
export const namedAgentCommand = (name: string): string =>
  `npm run agent --${urlFlag()} --name ${name} --key-file ~/.mintlake/${name}.key`

/** A command with a button that copies it. */
export const copyable = (command: string): TemplateResult => html`
  <div class="command">
    <code>${command.split(' ').map((word, at) => html`${at === 0 ? '' : ' '}<span class="word">${word}</span>`)}</code>
    <button type="button" @click=${(event: Event) => copy(event, command)}>Copy</button>
  </div>`

/** What a button of `copyable` did is shown so long. */
const DONE_SHOWN_MS = 1_500

/** Browsers give the clipboard to pages over https or of this computer alone; elsewhere the text is selected instead. */
async function copy({ currentTarget: button }: Event, text: string): Promise<void> {
  if (!(button instanceof HTMLElement)) return
  try {
    await navigator.clipboard.writeText(text)
    button.textContent = 'Copied'
  } catch {
    const code = button.parentElement?.querySelector('code')
    if (code) getSelection()?.selectAllChildren(code)
    button.textContent = 'Selected'
  }
  setTimeout(() => {
    button.textContent = 'Copy'
  }, DONE_SHOWN_MS)
}

/** What helps where the key of this tab is refused. */
export const keyRemedy = (): TemplateResult =>
  html`<a href=${routeHref('try')}>Forget the key in “Try it”</a>, or take another.`

/** What is shown of something fetched that is not there yet, or that could not be fetched. */
export const missingState = ({ error, errorTitle, isOfKey }: Fetched<unknown>): TemplateResult => {
  if (error === null) return html`<p class="note loading" role="status">Loading</p>`
  return isOfKey
    ? html`${emptyState(errorTitle, error)}<p class="empty">${keyRemedy()}</p>`
    : emptyState(
        errorTitle,
        `${error === `${errorTitle}.` ? '' : error} This page tries again by itself.`,
        ...keyCommand(error),
      )
}

/** Whether something fetched could not be fetched again: it is older than it looks. */
export const isStale = ({ error, value }: Fetched<unknown>): boolean => error !== null && value !== null

/** Over what is stale. @param what it is, with its verb */
export const staleBanner = (
  fetched: Fetched<unknown>,
  what = 'What you see was',
): TemplateResult | typeof nothing => {
  const { error, atMs, isOfKey } = fetched
  return isStale(fetched)
    ? html`<p class="banner floats" role="alert">${error} ${isOfKey ? keyRemedy() : nothing} ${what} true ${formatAge(atMs, Date.now())} ago.</p>`
    : nothing
}

/** What is written or chosen in the field that an event comes from. */
export const enteredText = ({ target }: Event): string =>
  target instanceof HTMLInputElement ||
  target instanceof HTMLTextAreaElement ||
  target instanceof HTMLSelectElement
    ? target.value
    : ''

/** Seconds until the next attempt, at least 0. */
export const secondsUntil = (atMs: number | null): number =>
  atMs === null ? 0 : Math.max(0, Math.ceil((atMs - Date.now()) / 1_000))

/** The command that gets a key, where the server's sentence says that one helps. */
const keyCommand = (error: string): string[] =>
  error.includes('/api/v1/keys/register')
    ? [`curl ${location.origin}/api/v1/keys/register -H 'Content-Type: application/json' -d '{"name":"me"}'`]
    : []

/** What a view shows before its first data came: why, and that it goes on by itself. */
export function waitingState({ state, retryAtMs, refusal }: Live): TemplateResult {
  const again = `This page tries again by itself, in ${secondsUntil(retryAtMs)} s.`
  switch (state) {
    case 'connecting':
    case 'live':
      return html`<p class="note loading" role="status">Loading</p>`
    case 'warming':
      return emptyState('The server is warming up', `It fills its market first. ${again}`)
    case 'refused':
      return emptyState('The market cannot be followed now', `${refusal} ${again}`, ...keyCommand(refusal))
    case 'waiting':
      return emptyState('The server cannot be reached', `${again} If it is yours, start it:`, 'npm start')
  }
}
