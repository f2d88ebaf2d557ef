// The picture of a token: made of its mint's address. Its image would be a request to a stranger's server, so it is shown only if
// its host is one that the operator names (`--image-hosts`), and over the mark, which stays where the image fails.
import { html, type TemplateResult } from 'lit-html'
import { hashText } from '../lib/text/hash-text.ts'

/** As the server wrote them into the page. */
const IMAGE_HOSTS = new Set(
  (document.getElementById('console')?.dataset.imageHosts ?? '').split(' ').filter((host) => host !== ''),
)

const MARK_HUES = 360
const MARK_CELLS = 5

/** A picture made of a mint's address. */
function mark(mint: string): TemplateResult {
  const hash = hashText(mint)
  const bits = hashText(`${mint} `)
  // One element for all cells: a list has many pictures.
  let cells = ''
  for (let at = 0; at < MARK_CELLS * 3; at++) {
    if (((bits >>> at) & 1) === 0) continue
    const [x, y] = [at % 3, Math.floor(at / 3)]
    cells += `M${x} ${y}h1v1h-1z`
    if (x < 2) cells += `M${MARK_CELLS - 1 - x} ${y}h1v1h-1z`
  }
  const hue = hash % MARK_HUES
  return html`<svg class="mark" viewBox="-1 -1 7 7" aria-hidden="true" fill="hsl(${hue} 60% 50%)"><path d=${cells}></path></svg>`
}

/** The address of a token's image, or null if it may not be asked for. */
function imageAddress(text: string | null | undefined): string | null {
  if (!text || IMAGE_HOSTS.size === 0) return null
  try {
    const { protocol, host, username, password, href } = new URL(text)
    const isAllowed = protocol === 'https:' && IMAGE_HOSTS.has(host) && username === '' && password === ''
    return isAllowed ? href : null
  } catch {
    return null
  }
}

const markBroken = ({ target }: Event, isBroken: boolean): void => {
  if (target instanceof HTMLElement) target.classList.toggle('broken', isBroken)
}

/** @param imageUri as the token's creator wrote it. */
export function tokenPicture(mint: string, imageUri: string | null | undefined): TemplateResult {
  const address = imageAddress(imageUri)
  if (address === null) return mark(mint)
  return html`<span class="picture">${mark(mint)}<img src=${address} alt="" width="28" height="28" loading="lazy" decoding="async" referrerpolicy="no-referrer"
    @error=${(event: Event) => markBroken(event, true)} @load=${(event: Event) => markBroken(event, false)} /></span>`
}
