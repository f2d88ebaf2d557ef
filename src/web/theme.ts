// Light or dark: what the system prefers, unless another was chosen here. It is always written into the page, so that there is one
// palette for each.
import { keptForGood } from './kept.ts'

export type Theme = 'light' | 'dark'

const CHOICE_ITEM = 'mintlake-theme'
const PREFERS_DARK = matchMedia('(prefers-color-scheme: dark)')
const listeners = new Set<() => void>()

const preferred = (): Theme => (PREFERS_DARK.matches ? 'dark' : 'light')

function chosen(): Theme | null {
  const choice = keptForGood.get(CHOICE_ITEM)
  return choice === 'light' || choice === 'dark' ? choice : null
}

function apply(): void {
  const theme = chosen() ?? preferred()
  if (document.documentElement.dataset.theme === theme) return
  document.documentElement.dataset.theme = theme
  for (const listener of listeners) listener()
}

/** Follows the system, and choices in other tabs. */
export function startTheme(): void {
  apply()
  PREFERS_DARK.addEventListener('change', apply)
  addEventListener('storage', apply)
}

/** The other theme. Who chooses what the system prefers follows the system again. */
export function switchTheme(): void {
  const theme: Theme = document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark'
  keptForGood.set(CHOICE_ITEM, theme === preferred() ? null : theme)
  apply()
}

/** For what draws with colours of its own. @returns a function that ends it. */
export function onThemeChange(listener: () => void): () => void {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}
