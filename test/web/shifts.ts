// Records which elements of a page move by themselves, with the browser's own measure (Layout Instability).
import type { Page } from 'playwright-core'

/** Beyond a tenth people are disturbed (web.dev/cls). */
const SHIFT_MAX = 0.02

/** One shift: when, its value as browsers count it, and what moved from where to where (x, y, width, height). */
export interface Shift {
  atMs: number
  value: number
  sources: string[]
}

/** To be run in the page before anything of it: it fills `shifts`. */
export const WATCH_SHIFTS = `window.shifts = []; new PerformanceObserver((list) => {
  const place = ({ x, y, width, height }) => [x, y, width, height].map(Math.round).join(' ')
  const nameOf = (node) => {
    const element = node instanceof Element ? node : node?.parentElement
    if (!element) return 'an element that is gone'
    const names = []
    for (let each = element; each && names.length < 4; each = each.parentElement)
      names.unshift(each.localName + [...each.classList].map((name) => '.' + name).join(''))
    return names.join(' > ') + ' "' + element.textContent.trim().replace(/\\s+/g, ' ').slice(0, 40) + '"'
  }
  for (const { startTime, value, sources } of list.getEntries())
    window.shifts.push({
      atMs: Math.round(startTime),
      value,
      sources: sources.map(({ node, previousRect, currentRect }) =>
        nameOf(node) + ': ' + place(previousRect) + ' -> ' + place(currentRect)),
    })
}).observe({ type: 'layout-shift', buffered: true })`

/** What has moved so far, if it is more than somebody sees: with what moved, so that a failure names its cause. */
export async function visibleShifts(page: Page): Promise<Shift[]> {
  const shifts = await page.evaluate<Shift[]>('shifts')
  return shifts.reduce((sum, { value }) => sum + value, 0) < SHIFT_MAX ? [] : shifts
}
